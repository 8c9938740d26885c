"""requirements files: the lines that fix a version."""

from __future__ import annotations

import posixpath
import re
import shlex

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from onnx_ci.records.base import record
from onnx_ci.records.model import Pin

_COMMENT = re.compile(r"(^|\s)#.*$")
_INCLUDE = re.compile(r"(?:-r|--requirement|-c|--constraint)(?:\s+|=|(?<=-[rc]))(.+)")
_OPTION = re.compile(r"\s--?[A-Za-z]")


@record
class Parsed:
    """What a requirements file says: its pins, and the files that it includes, by path in the project."""

    pins: list[Pin]
    includes: list[str]


def parse(text: str, path: str) -> Parsed:
    """Reads pins (``==`` and ``===``) and includes; editable installs, URLs, ranges and options fix no version.

    Args:
        text: The file's text.
        path: The file in the project, with forward slashes; includes are relative to its folder.
    """
    pins, includes = [], []
    for number, line in _logical_lines(text):
        if match := _INCLUDE.fullmatch(line):
            target = _unquoted(match[1])
            if "://" not in target:
                includes.append(posixpath.normpath(posixpath.join(posixpath.dirname(path), target)))
        elif not line.startswith("-") and (pin := _pin(line, path, number)):
            pins.append(pin)
    return Parsed(pins=pins, includes=includes)


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Joins continued lines, drops comments, and keeps the number of each first line."""
    found: list[tuple[int, str]] = []
    begun, start = "", 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_comment = line.lstrip().startswith("#")
        start = start if begun else number
        if line.endswith("\\") and not is_comment:
            begun += line[:-1] + " "
            continue
        whole, begun = _COMMENT.sub("", begun + ("" if is_comment and begun else line)).strip(), ""
        if whole:
            found.append((start, whole))
    return found


def _pin(line: str, path: str, number: int) -> Pin | None:
    option = _OPTION.search(line)  # --hash=…, --config-settings …
    try:
        requirement = Requirement(line[: option.start()] if option else line)
    except InvalidRequirement:
        return None  # a path, a URL or an archive
    specifiers = list(requirement.specifier)
    if requirement.url or len(specifiers) != 1:
        return None
    specifier = specifiers[0]
    if specifier.operator not in ("==", "===") or specifier.version.endswith(".*"):
        return None
    return Pin(
        name=canonicalize_name(requirement.name),
        version=specifier.version,
        marker=str(requirement.marker or ""),
        file=path,
        line=number,
    )


def _unquoted(text: str) -> str:
    try:
        return " ".join(shlex.split(text, posix=True)) or text
    except ValueError:
        return text
