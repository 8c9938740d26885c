"""Which commit this is, and which one it is compared with: read from git and from what the runner says."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SECONDS = 20.0


def head(folder: Path) -> str:
    """The commit that is checked out; "" where that can't be told."""
    return sha(_git(folder, "rev-parse", "--verify", "HEAD").strip())


def base(event: Mapping[str, Any], merge: str, folder: Path) -> str:
    """The commit that a pull request is compared with; "" for other events.

    What a workflow judges is the merge into the base branch, and what that merge and the base branch have in common is
    its first parent. The event's own `base.sha` may be older; it stands where another commit was checked out.

    Args:
        event: The payload.
        merge: GITHUB_SHA, GitHub's merge of a pull request.
        folder: In the repository.
    """
    pull = event.get("pull_request")
    if not isinstance(pull, Mapping):
        return ""
    parents = _parents(folder, merge) if sha(merge) else []
    given = pull.get("base")
    return parents[0] if len(parents) == 2 else sha(given.get("sha") if isinstance(given, Mapping) else "")


def sha(value: Any) -> str:
    """A commit's full name; "" for what is none, whatever it is."""
    return value if isinstance(value, str) and SHA.fullmatch(value) else ""


def _parents(folder: Path, commit: str) -> list[str]:
    # The raw object names its parents even where a shallow clone has none of them.
    header, _, _ = _git(folder, "cat-file", "commit", commit).partition("\n\n")
    return [sha(line.removeprefix("parent ")) for line in header.splitlines() if line.startswith("parent ")]


def _git(folder: Path, *arguments: str) -> str:
    # In a container the checkout may belong to another user. Nothing of the repository's own config runs anything here.
    command = ["git", "-C", str(folder), "-c", "safe.directory=*", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", errors="replace")
