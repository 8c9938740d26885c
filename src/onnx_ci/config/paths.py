"""Paths and functions that a config names: their form, whether they are there, and what was likely meant."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from onnx_ci.config.problems import closest, show
from onnx_ci.records.base import record

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_GLOB = re.compile(r"[*?\[]")
_FORMS = '"path.py:function" or "package.module:function"'


@record
class Fault:
    """What is wrong with one path or function, and what to do."""

    message: str
    hint: str = ""


def form_fault(path: str) -> Fault | None:
    """What is wrong with a path before anybody looks whether it is there; paths stay inside the project."""
    if any(not character.isprintable() for character in path):
        return Fault(message=f"{show(path)} holds characters that no path should")
    if "\\" in path:
        return Fault(message=f"{show(path)} has backslashes", hint=f"write {show(path.replace(chr(92), '/'))}")
    if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:", path):
        return Fault(message=f"{show(path)} is absolute", hint="write it relative to the folder of the config file")
    if ".." in PurePosixPath(path).parts:
        return Fault(message=f"{show(path)} leaves the project", hint="it must lie below the folder of the config file")
    return None


def file_fault(root: Path, path: str, *, inside: bool = False) -> Fault | None:
    """What is wrong with a file that must be there; with `inside`, links may not lead out of the project either."""
    if fault := form_fault(path):
        return fault
    try:
        if (root / path).is_dir():
            return Fault(message=f"{show(path)} is a folder, not a file")
        if not (root / path).is_file():
            return Fault(message=f"{show(path)}: no such file", hint=_similar(root, path))
        if inside and not (root / path).resolve().is_relative_to(root.resolve()):
            return Fault(message=f"{show(path)} is a link that leaves the project")
    except (OSError, ValueError) as error:
        return Fault(message=f"{show(path)} can't be looked up: {getattr(error, 'strerror', None) or error}")
    return None


def folder_fault(root: Path, path: str) -> Fault | None:
    """What is wrong with a folder that need not be there yet."""
    if fault := form_fault(path):
        return fault
    if not PurePosixPath(path).parts:
        return Fault(message="may not be the project's own folder", hint='such as "golden"')
    try:
        if (root / path).exists() and not (root / path).is_dir():
            return Fault(message=f"{show(path)} is a file, not a folder")
        if not (root / path).resolve().is_relative_to(root.resolve()):
            return Fault(message=f"{show(path)} is a link that leaves the project")
    except (OSError, ValueError, RuntimeError) as error:
        return Fault(message=f"{show(path)} can't be looked up: {getattr(error, 'strerror', None) or error}")
    return None


def entrypoint_fault(root: Path, text: str) -> Fault | None:
    """What is wrong with an entrypoint: a function, or a file alone for the short form."""
    if ":" in text:
        return function_fault(root, text)
    if text.endswith(".py"):
        return file_fault(root, text)
    if not form_fault(text) and _is_file(root, f"{text}.py"):
        return Fault(message=f"{show(text)} is not a file", hint=f"did you mean {show(f'{text}.py')}?")
    if _DOTTED.fullmatch(text) and "." in text:
        module, _, function = text.rpartition(".")
        return Fault(
            message=f"expected {_FORMS}, got {show(text)}", hint=f"did you mean {show(f'{module}:{function}')}?"
        )
    return Fault(message=f'expected {_FORMS}, or "path.py" for the short form, got {show(text)}')


def function_fault(root: Path, text: str) -> Fault | None:
    """What is wrong with ``path.py:function`` or ``package.module:function``; a module is not looked for."""
    place, _, function = text.rpartition(":")
    if function.endswith("()"):
        return Fault(message=f"{show(text)} calls the function", hint=f"name it only: {show(text[:-2])}")
    if not place or not _DOTTED.fullmatch(function):
        return Fault(message=f"expected {_FORMS}, got {show(text)}", hint="" if function else "name the function")
    if place.endswith(".py"):
        return file_fault(root, place)
    if _DOTTED.fullmatch(place):
        return None
    if not form_fault(place) and _is_file(root, f"{place}.py"):
        return Fault(message=f"{show(place)} is not a file", hint=f"did you mean {show(f'{place}.py:{function}')}?")
    return form_fault(place) or Fault(message=f"expected {_FORMS}, got {show(text)}")


def cases_fault(root: Path, text: str) -> Fault | None:
    """What is wrong with an entry of `cases`: a function, or files that a glob finds."""
    if ":" in text:
        return function_fault(root, text)
    if fault := form_fault(text):
        return fault
    if text.endswith(".py"):
        return Fault(message=f"{show(text)} names no function", hint=f"such as {show(f'{text}:make_inputs')}")
    try:
        found = sorted(root.glob(text)) if _GLOB.search(text) else [root / text] if (root / text).exists() else []
    except (OSError, ValueError, NotImplementedError, IndexError) as error:
        return Fault(message=f"{show(text)} is not a glob: {error}")
    if not found:
        return Fault(message=f"{show(text)} matches nothing", hint=_similar(root, text))
    if not any(path.suffix == ".npz" or path.is_dir() for path in found):
        return Fault(
            message=f"{show(text)} matches neither an .npz file nor a test_data_set folder",
            hint='other formats are read by a function of yours: "cases.py:cases"',
        )
    return None


def _is_file(root: Path, path: str) -> bool:
    try:
        return (root / path).is_file()
    except (OSError, ValueError):
        return False


def _similar(root: Path, path: str) -> str:
    """Corrects the first part of a path that is not there, and asks whether that was meant."""
    at, parts = root, PurePosixPath(path).parts
    for depth, part in enumerate(parts):
        if _GLOB.search(part):
            break
        if not (at / part).exists():
            near = closest(part, (entry.name for entry in at.iterdir()) if at.is_dir() else ())
            meant = PurePosixPath(*parts[:depth], near, *parts[depth + 1 :])
            if near and (_GLOB.search(path) or (root / meant).exists()):
                return f"did you mean {show(meant.as_posix())}?"
            break
        at = at / part
    return "paths are relative to the folder of the config file"
