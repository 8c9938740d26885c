"""Renders a comment as GitHub shows it and takes its picture: python docs/render_comment.py COMMENT.md OUT.png

For looking at it while it is changed, and for the picture in the README. Needs comrak and nh3 (both on PyPI), Chromium
(Debian: chromium fonts-noto-color-emoji fonts-dejavu-core), and github-markdown-light.css and -dark.css from the npm
package github-markdown-css, in a folder given by --css.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

import comrak
import nh3

_INLINE = {"a", "br", "code", "del", "em", "kbd", "s", "span", "strong", "sub", "sup"}
_BLOCKS = {"blockquote", "details", "div", "hr", "input", "li", "ol", "p", "pre", "summary", "ul"}
_HEADINGS = {f"h{level}" for level in range(1, 7)}
TAGS = _INLINE | _BLOCKS | _HEADINGS | {"table", "tbody", "td", "tfoot", "th", "thead", "tr"}
PAGE = """<!doctype html><meta charset="utf-8"><style>{css}
body {{ margin: 0; background: {back}; }}
.box {{ border: 1px solid {line}; border-radius: 6px; margin: 16px; }}
.who {{ padding: 8px 16px; font: 14px/1.5 sans-serif; color: {soft}; border-bottom: 1px solid {line}; }}
.markdown-body {{ padding: 16px; font-size: 14px; }}
</style><div class="box"><div class="who"><b>github-actions</b> bot commented</div>
<article class="markdown-body">{body}</article></div>"""
THEMES = {
    "light": {"back": "#ffffff", "line": "#d1d9e0", "soft": "#59636e"},
    "dark": {"back": "#0d1117", "line": "#3d444d", "soft": "#9198a1"},
}


def to_html(markdown: str) -> str:
    """Renders GitHub's dialect, and drops what its sanitizer drops."""
    extensions = comrak.ExtensionOptions()
    for name in ("table", "strikethrough", "tasklist", "autolink", "tagfilter", "alerts", "math_dollars"):
        setattr(extensions, name, True)
    options = comrak.RenderOptions()
    options.unsafe_ = True
    raw = comrak.render_markdown(markdown, extension_options=extensions, render_options=options)
    return nh3.clean(raw, tags=TAGS, attributes={"a": {"href"}, "*": {"align"}, "details": {"open"}, "code": {"class"}})


def main() -> None:
    """Reads the arguments and takes the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("comment", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--css", type=Path, required=True)
    parser.add_argument("--theme", choices=sorted(THEMES), default="light")
    parser.add_argument("--width", type=int, default=930)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--open", action="store_true", help="unfold the details")
    given = parser.parse_args()
    body = to_html(given.comment.read_text(encoding="utf-8"))
    if given.open:
        body = body.replace("<details>", "<details open>")
    css = (given.css / f"github-markdown-{given.theme}.css").read_text(encoding="utf-8")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("render_comment: Chromium is missing: apt-get install chromium fonts-noto-color-emoji")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        page.write_text(PAGE.format(css=css, body=body, **THEMES[given.theme]), encoding="utf-8")
        flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
        flags += "--disable-component-update --disable-sync --hide-scrollbars --force-device-scale-factor=2"
        subprocess.run(
            [
                browser,
                *flags.split(),
                f"--user-data-dir={folder}/profile",
                f"--window-size={given.width},{given.height}",
                f"--screenshot={given.picture.resolve()}",
                page.as_uri(),
            ],
            check=True,
            capture_output=True,
        )


if __name__ == "__main__":
    main()
