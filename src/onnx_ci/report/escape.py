"""Text from outside, made harmless for each place that it is written to.

GitHub turns text into more than CommonMark does: `@name` notifies a person (as `&#64;name` does too, since mentions are
looked for after entities are decoded), `#12` and `GH-12` leave a trace in another issue, bare addresses become links,
`:name:` a picture and `$…$` a formula. Inside a code span none of it happens; in prose, an invisible word joiner breaks
the patterns.
"""

from __future__ import annotations

import html
import re
import unicodedata

JOINER = "\u2060"
BAR = "∣"
"""Stands for `|` in table cells: parsers differ on what a backslash before it means, inside a code span above all."""

_REPLACED = "\ufffd"
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_SPACE = re.compile(r"[^\S\u00a0]+")  # our own numbers hold their unit with U+00A0
_BACKTICKS = re.compile(r"`+")
_SPECIAL = re.compile(r"([\\`*_\[\]~!])")
_SCHEME = re.compile(r"(\w):(?=//)")
_WWW = re.compile(r"(www)\.", re.IGNORECASE)
_ISSUE = re.compile(r"\b(gh)-(?=\d)", re.IGNORECASE)
_OPENER = re.compile(r"^(\d{1,9})([.)])|^([-+=])")
"""At the start of a line these would open a list, a heading or a rule."""
_EMOJI = re.compile(r":(?=[\w+-]+:)")


class _Plain(dict[int, int | str]):
    """What stands for each character: itself, or a sign that one was there. Filled in as characters turn up."""

    def __missing__(self, point: int) -> int | str:
        # Cc control, Cf format (directions, zero width, tags), Cs surrogate, Co private, Zl and Zp line separators
        hidden = unicodedata.category(chr(point)) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        self[point] = _REPLACED if hidden and chr(point) not in "\n\t\r" else point
        return self[point]


_PLAIN = _Plain()


def clean(text: str, *, lines: bool = False, limit: int = 2000) -> str:
    """Plain text without terminal codes, control and direction characters, invisible ones and lone surrogates.

    Args:
        text: Whatever came.
        lines: Keep line feeds; else every run of white space becomes one space.
        limit: Longer text is cut, with an ellipsis.
    """
    text = _ANSI.sub("", text[: 4 * limit])
    kept = text.translate(_PLAIN)
    parts = kept.splitlines() if lines else [kept]
    joined = "\n".join(_SPACE.sub(" ", part).rstrip() if lines else _SPACE.sub(" ", part).strip() for part in parts)
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"


def code(text: str, *, limit: int = 200) -> str:
    """A code span, whatever backticks the text has; in a table cell too."""
    text = clean(text, limit=limit).replace("|", BAR).replace("<!--", f"<!{JOINER}--")
    if not text:
        return "` `"
    fence = "`" * (max((len(run) for run in _BACKTICKS.findall(text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def prose(text: str, *, limit: int = 2000) -> str:
    """A sentence as markdown that shows exactly its characters: no mention, link, reference, markup or HTML."""
    text = clean(text, limit=limit).replace("|", BAR)
    text = text.replace("@", "@" + JOINER).replace("#", "#" + JOINER)
    text = _SCHEME.sub(rf"\1:{JOINER}", text)
    text = _WWW.sub(rf"\1{JOINER}.", text)
    text = _ISSUE.sub(rf"\1{JOINER}-", text)
    text = _EMOJI.sub(f":{JOINER}", text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _SPECIAL.sub(r"\\\1", text).replace("$", "&#36;")
    return _OPENER.sub(_first, text)


def hypertext(text: str, *, limit: int = 4000, lines: bool = False) -> str:
    """Text for an HTML element or a quoted attribute."""
    return html.escape(clean(text, limit=limit, lines=lines))


def command_data(text: str, *, limit: int = 2000) -> str:
    """The message of a workflow command."""
    return clean(text, lines=True, limit=limit).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def command_property(text: str, *, limit: int = 300) -> str:
    """A property of a workflow command, which commas and colons end."""
    return command_data(clean(text, limit=limit)).replace(":", "%3A").replace(",", "%2C")


def path(text: str | None) -> str:
    """A path inside the repository with forward slashes; "" where it is none, or leads out of it."""
    cleaned = clean(text or "", limit=500).replace("\\", "/").removeprefix("./")
    outside = cleaned.startswith("/") or ".." in cleaned.split("/") or re.match(r"[A-Za-z]:|\w+://", cleaned)
    return "" if outside or _REPLACED in cleaned else cleaned


def line(number: int | None) -> int | None:
    """A line number from 1, or None where it can't be one."""
    return number if number is not None and 1 <= number <= 10_000_000 else None


def _first(match: re.Match[str]) -> str:
    return f"{match[1]}\\{match[2]}" if match[1] else f"\\{match[3]}"
