"""When a locked version and an installed one agree, and under which markers a pin holds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.version import InvalidVersion, Version

_EXTRA = re.compile(r"""\bextra\s*==\s*['"]([^'"]*)['"]""")
_GROUP = re.compile(r"""['"]([^'"]*)['"]\s+in\s+(?:extras|dependency_groups)\b""")


def agree(locked: str, installed: str) -> bool:
    """Whether an installed version is the locked one; a local part such as +cpu counts only where it is locked."""
    try:
        wanted, found = Version(locked), Version(installed)
    except InvalidVersion:
        return locked == installed
    if wanted.local is None:
        return wanted == Version(found.public)
    return wanted == found


def applies(marker: str, environment: Mapping[str, str]) -> bool | None:
    """Whether a pin holds in an environment; None where its marker can't be read.

    Which extras and groups were installed is not on record, so that a marker that asks for one holds when it would
    hold with it.
    """
    if not marker:
        return True
    try:
        parsed = Marker(marker)
        groups = frozenset(_GROUP.findall(marker))
        sets: dict[str, str | frozenset[str]] = {"extras": groups, "dependency_groups": groups}
        return any(
            parsed.evaluate({**environment, **sets, "extra": extra}, context="lock_file")
            for extra in ("", *_EXTRA.findall(marker))
        )
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName, KeyError):
        return None


def older(installed: str, minimum: str) -> bool | None:
    """Whether a version is below a minimum, by release numbers alone; None where it is no version.

    Vendors ship builds such as 2.9.0a0+nv25.10 that are the release itself.
    """
    try:
        found, least = Version(installed).release, Version(minimum).release
    except InvalidVersion:
        return None
    length = max(len(found), len(least))
    return _padded(found, length) < _padded(least, length)


def _padded(release: tuple[int, ...], length: int) -> tuple[int, ...]:
    return release + (0,) * (length - len(release))
