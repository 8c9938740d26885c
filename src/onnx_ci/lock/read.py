"""Reads the lock files that a config names, whatever tool wrote them."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path

from onnx_ci.errors import UsageError
from onnx_ci.lock import requirements, tables
from onnx_ci.records.model import LockSpec, Pin

Reader = Callable[[str, str], list[Pin]]
_BY_NAME: dict[str, Reader] = {"uv.lock": tables.uv, "poetry.lock": tables.poetry}
_NOT_READ = {
    "Pipfile.lock": "pipenv requirements > requirements.lock",
    "pdm.lock": "pdm export -o requirements.lock",
    "conda-lock.yml": "pip freeze > requirements.lock",
    "environment.yml": "pip freeze > requirements.lock",
    "pixi.lock": "pip freeze > requirements.lock",
    "pyproject.toml": "pip freeze > requirements.lock",
}
_LARGEST = 64 * 2**20


def read(lock: LockSpec, root: Path) -> LockSpec:
    """Reads the lock files that are named, and the requirements files that these include.

    Args:
        lock: As the config gave it: the files' paths without digests.
        root: The project's folder, which no file may leave.

    Returns:
        The same with the pins of all files, in their order, and every file's sha256.

    Raises:
        UsageError: A file is missing, can't be read, or is not what its name says.
    """
    files: dict[str, str] = {}
    pins: list[Pin] = []
    for path in lock.files:
        pins += _read_file(path, root, files, included_by="")
    return dataclasses.replace(lock, files=files, pins=pins)


def _read_file(path: str, root: Path, files: dict[str, str], *, included_by: str) -> list[Pin]:
    if path in files:
        return []
    text, files[path] = _text(path, root, included_by)
    name = path.rpartition("/")[2]
    if name in _NOT_READ:
        raise UsageError(f"{name} is not a lock file that onnx-ci reads", where=path, hint=f"Try: {_NOT_READ[name]}")
    if reader := _BY_NAME.get(name) or (tables.pylock if tables.is_pylock(name) else None):
        return reader(text, path)
    if name.endswith(".toml"):
        raise UsageError(
            "is no known lock file", where=path, hint="Known: pylock.toml, pylock.NAME.toml, uv.lock, poetry.lock."
        )
    parsed = requirements.parse(text, path)
    pins = list(parsed.pins)
    for include in parsed.includes:
        pins += _read_file(include, root, files, included_by=path)
    return pins


def _text(path: str, root: Path, included_by: str) -> tuple[str, str]:
    where = included_by or path
    said = f"includes {path}, which" if included_by else "the lock file"
    try:
        full = (root / path).resolve()
        if not full.is_relative_to(root.resolve()):
            raise UsageError(f"{said} lies outside the project", where=where)
        if not full.is_file():
            raise UsageError(f"{said} does not exist", where=where, hint="Commit it, or remove it from lock.files.")
        if full.stat().st_size > _LARGEST:
            raise UsageError(f"{said} is larger than 64 MiB", where=where)
        raw = full.read_bytes()
        return raw.decode("utf-8-sig"), hashlib.sha256(raw).hexdigest()
    except UnicodeDecodeError as error:
        raise UsageError(f"{said} is not UTF-8", where=where) from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{said} can't be read: {error}", where=where) from error
