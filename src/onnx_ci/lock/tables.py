"""The lock files that are TOML: pylock.toml, uv.lock and poetry.lock."""

from __future__ import annotations

import re
from typing import Any

import tomllib
from packaging.utils import canonicalize_name

from onnx_ci.errors import UsageError
from onnx_ci.records.model import Pin

_PYLOCK = re.compile(r"pylock(\.[^.]+)?\.toml")


def is_pylock(name: str) -> bool:
    """Whether a file is called as the lock files of Python's own standard are."""
    return _PYLOCK.fullmatch(name) is not None


def pylock(text: str, path: str) -> list[Pin]:
    """Reads a pylock.toml; packages from a folder or a repository have no version to hold to.

    Raises:
        UsageError: It is not one.
    """
    try:
        from packaging.pylock import Pylock, PylockValidationError
    except ImportError:
        hint = "Install packaging 26 or later beside onnx-ci."
        raise UsageError("this packaging does not know pylock.toml", where=path, hint=hint) from None
    try:
        lock = Pylock.from_dict(_table(text, path))
    except PylockValidationError as error:
        raise UsageError(f"is not a pylock.toml: {error}", where=path) from error
    lines = _header_lines(text, "packages")
    return [
        _pin(package.name, str(package.version), str(package.marker or ""), path, lines.get(at))
        for at, package in enumerate(lock.packages)
        if package.version is not None and package.vcs is None and package.directory is None
    ]


def uv(text: str, path: str) -> list[Pin]:
    """Reads a uv.lock; a package may stand there once for each fork of the resolution.

    Raises:
        UsageError: It is not one.
    """
    pins = []
    lines = _header_lines(text, "package")
    for at, package in enumerate(_packages(text, path)):
        if "registry" in package.get("source", {"registry": ""}) and "version" in package:
            forks = package.get("resolution-markers", [])
            marker = " or ".join(f"({fork})" for fork in forks)
            pins.append(_pin(package["name"], package["version"], marker, path, lines.get(at)))
    return pins


def poetry(text: str, path: str) -> list[Pin]:
    """Reads a poetry.lock.

    Raises:
        UsageError: It is not one.
    """
    pins = []
    lines = _header_lines(text, "package")
    for at, package in enumerate(_packages(text, path)):
        if package.get("source", {}).get("type", "legacy") == "legacy" and "version" in package:
            markers = package.get("markers", "")
            # One marker, or one for each group of dependencies.
            each = list(markers.values()) if isinstance(markers, dict) else [markers]
            marker = "" if "" in each else " or ".join(f"({one})" for one in each)
            pins.append(_pin(package["name"], package["version"], marker, path, lines.get(at)))
    return pins


def _pin(name: str, version: str, marker: str, path: str, line: int | None) -> Pin:
    return Pin(name=canonicalize_name(name), version=version, marker=marker, file=path, line=line)


def _packages(text: str, path: str) -> list[dict[str, Any]]:
    packages = _table(text, path).get("package", [])
    try:
        for package in packages:
            _expect(package, {"name": str, "version": str, "source": dict, "resolution-markers": list}, ("name",))
            for marker in package.get("resolution-markers", []):
                _expect({"marker": marker}, {"marker": str}, ())
            markers = package.get("markers", "")
            for marker in markers.values() if isinstance(markers, dict) else [markers]:
                _expect({"marker": marker}, {"marker": str}, ())
    except (TypeError, AttributeError) as error:
        raise UsageError(f"is not a lock file: {error}", where=path) from error
    return list(packages)


def _expect(table: dict[str, Any], kinds: dict[str, type], required: tuple[str, ...]) -> None:
    for key in required:
        if key not in table:
            raise TypeError(f"a package has no {key}")
    for key, kind in kinds.items():
        if key in table and not isinstance(table[key], kind):
            raise TypeError(f"{key} is not {kind.__name__}")


def _table(text: str, path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"is not valid TOML: {error}", where=path) from error


def _header_lines(text: str, table: str) -> dict[int, int]:
    """The line of the n-th ``[[table]]``, from 1."""
    header = re.compile(rf"\[\[\s*{table}\s*\]\]\s*(#.*)?")
    lines = (number for number, line in enumerate(text.splitlines(), 1) if header.fullmatch(line.strip()))
    return dict(enumerate(lines))
