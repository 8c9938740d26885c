"""Finds the config file and reads it: the text's data, and the line of each key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import tomllib

from onnx_ci.config import problems
from onnx_ci.config.locate import key_lines, line_of
from onnx_ci.config.problems import ConfigError, Problem
from onnx_ci.errors import UsageError
from onnx_ci.records.base import record

NAME = "onnx-ci.toml"
PYPROJECT = "pyproject.toml"
_TABLE = ("tool", "onnx-ci")
_LARGEST_FILE = 2**20


@record
class Source:
    """A config file as read.

    Attributes:
        file: Its name for people: relative to the repository where it lies in one.
        folder: The project: what its paths are relative to.
        data: The config's own table.
        lines: Line by key of that table.
    """

    file: str
    folder: Path
    data: dict[str, Any]
    lines: Mapping[problems.Path, int]

    def line(self, path: problems.Path) -> int | None:
        """The line of a key, or of the nearest one around it."""
        return line_of(self.lines, path)


def locate(path: Path | None, *, cwd: Path) -> Path:
    """Finds the config: the named file, or the one of this folder or of those above it in the same repository.

    Raises:
        UsageError: There is none, or one folder has two.
    """
    if path is not None:
        return Path(os.path.normpath(cwd.absolute() / path))
    for folder in _upwards(cwd.absolute()):
        own, project = folder / NAME, folder / PYPROJECT
        in_project = project.is_file() and _has_table(project)
        if own.exists() and in_project and not _is_empty(own):
            raise UsageError(
                f"both {NAME} and [tool.onnx-ci] in {PYPROJECT} configure this project",
                where=str(folder),
                hint=f"Keep one of them, or name it: --config {NAME}",
            )
        if in_project:
            return project
        if own.exists():
            return own
    raise UsageError(
        f"no {NAME} here, and no [tool.onnx-ci] in {PYPROJECT}",
        where=str(cwd),
        hint="Write a first one with: onnx-ci init",
    )


def read(path: Path, *, cwd: Path) -> Source:
    """Reads a config file; outside a repository its name is taken relative to `cwd`.

    Raises:
        ConfigError: It can't be read, or is not TOML.
    """
    folder = path.parent
    base = _repository(folder) or (cwd.absolute() if folder.is_relative_to(cwd.absolute()) else folder)
    file = path.relative_to(base).as_posix()
    text = _text(path, file)
    prefix = _TABLE if path.name == PYPROJECT else ()
    data = _parse(text, file)
    for key in prefix:
        data = data.get(key, {}) if isinstance(data, dict) else {}
    if not isinstance(data, dict):
        _stop(file, "[tool.onnx-ci] is not a table")
    lines = {at[len(prefix) :]: line for at, line in key_lines(text).items() if at[: len(prefix)] == prefix}
    return Source(file=file, folder=folder, data=data, lines=lines)


def _upwards(folder: Path) -> list[Path]:
    root = _repository(folder)
    if root is None:
        return [folder]
    return [folder, *(parent for parent in folder.parents if parent.is_relative_to(root))]


def _repository(folder: Path) -> Path | None:
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)


def _has_table(path: Path) -> bool:
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool")
    except (OSError, ValueError, RecursionError):
        return False  # another tool's fault; onnx-ci.toml may well be beside it
    return isinstance(tool, dict) and bool(tool.get("onnx-ci"))


def _is_empty(path: Path) -> bool:
    try:
        return not tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False


def _text(path: Path, file: str) -> str:
    try:
        if path.is_dir():
            _stop(file, "is a folder, not a file", f"name the file: {file}/{NAME}" if (path / NAME).is_file() else "")
        if not path.exists():
            near = problems.closest(path.name, _neighbours(path))
            _stop(file, "no such file", f"did you mean {path.with_name(near).name}?" if near else "")
        if not path.is_file():
            _stop(file, "is not a regular file")
        if path.stat().st_size > _LARGEST_FILE:
            _stop(file, "is larger than 1 MiB: not a config")
        raw = path.read_bytes()
    except OSError as error:
        _stop(file, f"can't be read: {error.strerror or error}")
    try:
        return raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        _stop(
            file, f"is not UTF-8: byte 0x{raw[error.start]:02x}", "save it as UTF-8; TOML has no other encoding", line
        )


def _neighbours(path: Path) -> list[str]:
    try:
        return [entry.name for entry in path.parent.iterdir() if entry.suffix == ".toml"]
    except OSError:
        return []


def _parse(text: str, file: str) -> Any:
    try:
        return tomllib.loads(text)
    except RecursionError:
        _stop(file, "is not TOML that can be read: nested too deep")
    except ValueError as error:
        message, _, place = str(error).partition(" (at ")
        number = place.removeprefix("line ").partition(",")[0]
        line = int(number) if number.isdigit() else text.count("\n") + 1 if place.startswith("end of") else None
        _stop(file, f"is not valid TOML: {message}", line=line)


def _stop(file: str, message: str, hint: str = "", line: int | None = None) -> NoReturn:
    raise ConfigError(file, [Problem(path=(), message=message, hint=hint, line=line)])
