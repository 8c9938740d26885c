"""Writes ``actions/job/action.yml`` from the root's ``action.yml``; `--check` only says whether they agree."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HEAD = "# Written from the root's action.yml by `python actions/job/copy.py`; the reason stands there.\n"


def copied(root: str) -> str:
    """The text of the copy: the root's, with paths from the copy's own folder, and no face on the marketplace."""
    body = root[root.index("name:") :]
    branding = body[body.index("branding:") : body.index("inputs:")]
    return HEAD + body.replace(branding, "").replace("$GITHUB_ACTION_PATH/actions/job/", "$GITHUB_ACTION_PATH/")


def main(arguments: list[str]) -> int:
    """Writes the copy, or compares it."""
    text = copied((ROOT / "action.yml").read_text(encoding="utf-8"))
    target = HERE / "action.yml"
    if "--check" not in arguments:
        target.write_text(text, encoding="utf-8")
    elif target.read_text(encoding="utf-8") != text:
        print("actions/job/action.yml is not what action.yml says: run `python actions/job/copy.py`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
