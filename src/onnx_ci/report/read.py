"""Reads results, the plan and the base's contracts as what they are: files from somebody else's machine.

Nothing is believed: file names say nothing, links are not followed, sizes, depth and types are checked before use, and
what can't be read is a sentence in `problems` and not a traceback. The other files stand.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from onnx_ci import commits
from onnx_ci.records import contract, report, result
from onnx_ci.records.contract import Contract
from onnx_ci.records.report import Plan, Provenance
from onnx_ci.records.result import Result

MAX_FILE_BYTES = 32 << 20
MAX_TOTAL_BYTES = 512 << 20
MAX_FILES = 5000
MAX_DEPTH = 64
_SMALL_FILE_BYTES = 64 << 10
T = TypeVar("T")


class UnreadableError(ValueError):
    """A file that is not what it should be; the message says why, without its name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """What a folder gave: results in the order of their file names, and a sentence for each file that failed."""

    results: list[Result]
    problems: list[str]


def results(folder: Path) -> Read:
    """Reads every ``*.json`` of a results folder; a folder that is not there has none."""
    found: list[Result] = []
    problems: list[str] = []
    budget = MAX_TOTAL_BYTES
    for path in _files(folder, problems):
        try:
            record, size = _record(path, Result, result.SCHEMA_VERSION, "result", limit=min(MAX_FILE_BYTES, budget))
        except UnreadableError as error:
            problems.append(f"{path.name}: {error}")
            continue
        budget -= size
        found.append(record)
    return Read(results=found, problems=problems)


def plan(path: Path) -> Plan:
    """Reads the plan.

    Raises:
        UnreadableError: It is missing, or no plan of this version.
    """
    return _record(path, Plan, report.SCHEMA_VERSION, "plan", limit=MAX_FILE_BYTES)[0]


def provenance(artifacts: Path) -> Provenance | None:
    """Which commit a folder of artifacts says that it is of; None where it says nothing that can be read."""
    path = artifacts / report.PROVENANCE
    try:
        found, _ = _record(path, Provenance, report.SCHEMA_VERSION, "provenance", limit=_SMALL_FILE_BYTES)
    except UnreadableError:
        return None
    return found if commits.sha(found.commit) else None


def contracts(artifacts: Path) -> tuple[dict[str, Contract], list[str]]:
    """Reads what the base's artifacts promise, and what they were made with.

    Returns:
        Contracts by label, and a sentence for each contract that can't be read. A base only informs, so these are
        notes and no problems.
    """
    found: dict[str, Contract] = {}
    notes: list[str] = []
    budget = MAX_TOTAL_BYTES
    folders = sorted(artifacts.iterdir())[:MAX_FILES] if _is_folder(artifacts) else []
    for folder in folders:
        path = folder / "contract.json"
        if not _is_folder(folder) or not path.exists():
            continue
        try:
            limit = min(MAX_FILE_BYTES, budget)
            read, size = _record(path, Contract, contract.SCHEMA_VERSION, "contract", limit=limit)
        except UnreadableError as error:
            notes.append(f"The base's {folder.name}/contract.json: {error}")
            continue
        budget -= size
        found[result.label(read.model, read.variant)] = read
    return found, notes


def text(path: Path, *, limit: int) -> str:
    """Reads a regular text file.

    Raises:
        UnreadableError: It is a link, too large, or not UTF-8.
    """
    try:
        return _bytes(path, limit).decode("utf-8")
    except UnicodeError:
        raise UnreadableError("is not UTF-8 text") from None


def document(path: Path, *, limit: int = MAX_FILE_BYTES) -> tuple[Any, int]:
    """Reads JSON from a regular file, with its size in bytes.

    Raises:
        UnreadableError: It is a link, too large, no JSON, nested too deep, or not Unicode.
    """
    raw = _bytes(path, limit)
    try:
        value = json.loads(raw, object_pairs_hook=_unique, parse_constant=_refuse)
        if _depth(value) > MAX_DEPTH:
            raise UnreadableError(f"nested deeper than {MAX_DEPTH} levels")
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        raise UnreadableError("not Unicode text") from None
    except RecursionError:
        raise UnreadableError(f"nested deeper than {MAX_DEPTH} levels") from None
    except UnreadableError:
        raise
    except ValueError as error:
        raise UnreadableError(f"not JSON: {error}") from None
    return value, len(raw)


def _record(path: Path, cls: type[T], version: int, noun: str, *, limit: int) -> tuple[T, int]:
    value, size = document(path, limit=limit)
    if not isinstance(value, dict):
        raise UnreadableError(f"not a {noun}: expected a JSON object")
    written = value.get("schema_version")
    if written != version or isinstance(written, bool):
        raise UnreadableError(
            f"{noun} of schema version {written!r:.40}, this onnx-ci reads version {version}: "
            "run all jobs with one version of onnx-ci"
        )
    try:
        # not strict: "nan" and "inf" stand for the floats that JSON lacks; every value still ends with its own type
        return TypeAdapter(cls).validate_python(value), size
    except ValidationError as error:
        raise UnreadableError(f"not a {noun}: {_first(error)}") from None


def _first(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    where = ".".join(str(part) for part in errors[0]["loc"])
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{where:.200}: {errors[0]['msg']:.200}{more}"


def _files(folder: Path, problems: list[str]) -> list[Path]:
    if not folder.exists() and not folder.is_symlink():
        return []
    if not _is_folder(folder):
        problems.append(f"{folder.name}: not a folder, or a link")
        return []
    paths = sorted(path for path in folder.iterdir() if path.name.endswith(".json"))
    if len(paths) > MAX_FILES:
        problems.append(f"{folder.name}: {len(paths)} files, of which {MAX_FILES} were read")
    return paths[:MAX_FILES]


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _bytes(path: Path, limit: int) -> bytes:
    # lstat names a link as one; the flags and fstat hold where something else takes the file's place in between
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise UnreadableError("a link, or no regular file")
        flags = os.O_RDONLY
        for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):  # opening a pipe would wait for its writer
            flags |= getattr(os, name, 0)
        with open(os.open(path, flags), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise UnreadableError("a link, or no regular file")
            raw = stream.read(limit + 1)
    except OSError as error:
        raise UnreadableError(f"can't be read: {error.strerror}") from None
    if len(raw) > limit:
        raise UnreadableError(f"larger than {limit >> 20} MiB")
    return raw


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise UnreadableError("a key stands twice in one object")
    return value


def _refuse(constant: str) -> Callable[[], None]:
    raise UnreadableError(f"not JSON: {constant} is no JSON number")


def _depth(value: Any) -> int:
    deepest = 0
    pending: list[tuple[Any, int]] = [(value, 1)]
    while pending:
        item, depth = pending.pop()
        deepest = max(deepest, depth)
        if isinstance(item, dict):
            pending += [(child, depth + 1) for child in item.values() if isinstance(child, (dict, list))]
        elif isinstance(item, list):
            pending += [(child, depth + 1) for child in item if isinstance(child, (dict, list))]
    return deepest
