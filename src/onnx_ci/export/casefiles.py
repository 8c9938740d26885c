"""Reads the user's case files: ``.npz`` without pickle, and ``test_data_set_*`` folders."""

from __future__ import annotations

import glob
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from onnx_ci.artifact import tensors
from onnx_ci.errors import OnnxCiError, UsageError
from onnx_ci.export import arguments, dynamic
from onnx_ci.export.types import NamedInputs

_PATH = re.compile(r"(?P<name>\w+)(?P<steps>(?:\.\w+|\[\d+\])*)")


def find(pattern: str, root: Path, *, where: str) -> list[Path]:
    """The files and folders of a pattern, by name with numbers in their order.

    Raises:
        UsageError: There is none, or one that holds no case.
    """
    found = [Path(path) for path in glob.glob(str(root / pattern), recursive=True)]
    if not found:
        raise UsageError(
            f"{pattern} matches nothing",
            where=where,
            hint="Patterns are relative to the config's folder; a function is written path.py:function.",
        )
    for path in found:
        if not (path.suffix == ".npz" or (path.is_dir() and (path / "input_0.pb").is_file())):
            raise UsageError(
                f"{path.name} is neither an .npz file nor a folder with input_0.pb",
                where=where,
                hint="Narrow the pattern.",
            )
    return sorted(
        found, key=lambda path: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(path))]
    )


def read(
    path: Path, template: NamedInputs | None, parameters: Sequence[str], names: Sequence[str], *, where: str
) -> NamedInputs:
    """Reads one case.

    Args:
        path: An ``.npz`` file or a folder.
        template: Another case, whose nesting and whose Python values are taken over; None if there is none.
        parameters: Of forward, in order.
        names: The file's inputs in order, where they are known; else the tensors of `template` in order.
        where: The key of the config that named the file.

    Raises:
        OnnxCiError: It can't be read, or fits forward by neither name nor position.
    """
    where = f"{where}: {path.name}"
    values = _npz(path, where) if path.suffix == ".npz" else _data_set(path, parameters, template, names, where)
    return _assemble(values, template, parameters, where)


def to_tensor(value: Any, *, where: str) -> Any:
    """An array as a tensor of its own dtype; lists of arrays and None stay what they are.

    Raises:
        UsageError: torch has no such dtype.
    """
    if value is None:
        return None
    if isinstance(value, list):
        return [to_tensor(item, where=where) for item in value]
    array = np.ascontiguousarray(value)
    if array.ndim != np.ndim(value):
        array = array.reshape(np.shape(value))  # ascontiguousarray makes a scalar one-dimensional
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    try:
        return torch.from_numpy(array.copy())
    except TypeError as error:
        raise UsageError(f"torch has no dtype {array.dtype}", where=where) from error


def _npz(path: Path, where: str) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: to_tensor(_member(archive, name, where), where=f"{where}: {name}") for name in archive.files}
    except (OSError, zipfile.BadZipFile, EOFError, ValueError) as error:
        raise OnnxCiError(f"can't be read: {error}", where=where, hint="Write it with numpy.savez.") from error


def _member(archive: Mapping[str, npt.NDArray[Any]], name: str, where: str) -> npt.NDArray[Any]:
    try:
        array = archive[name]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise UsageError(
            f"{name} holds Python objects, which are never unpickled",
            where=where,
            hint="Save plain arrays of numbers: give each array a numeric dtype before numpy.savez.",
        ) from error
    if array.dtype.kind == "V":
        raise UsageError(
            f"{name} has lost its dtype ({array.dtype})",
            where=where,
            hint=".npz can't hold bfloat16: use a test_data_set folder or a function.",
        )
    return array


def _data_set(
    folder: Path, parameters: Sequence[str], template: NamedInputs | None, names: Sequence[str], where: str
) -> dict[str, Any]:
    given = tensors.read_values(folder, "input")
    values = {name: to_tensor(value, where=f"{where}: {name}") for name, value in given.items()}
    known = {*parameters, *(arguments.paths(template) if template else ())}
    if values.keys() <= known:
        return values
    order = list(names) or list(parameters)
    if len(values) > len(order) or (names and len(values) != len(names)):
        raise UsageError(
            f"its inputs ({', '.join(values)}) are not those of forward ({', '.join(order)}), by name or by number",
            where=where,
        )
    return dict(zip(order, values.values(), strict=False))


def _assemble(
    values: Mapping[str, Any], template: NamedInputs | None, parameters: Sequence[str], where: str
) -> NamedInputs:
    if template is None:
        return nest(values, where)
    known = arguments.paths(template)
    for name in values:
        if name not in known and name not in parameters:
            raise dynamic.unknown("input", name, [*known, *parameters], where)
    missing = [path for path, leaf in known.items() if isinstance(leaf, torch.Tensor) and path not in values]
    if missing:
        raise UsageError(f"{', '.join(missing)} is missing; it has {', '.join(values)}", where=where)
    inputs = arguments.rebuild(template, lambda path, leaf: _like(leaf, values[path]) if path in values else leaf)
    return inputs | {name: value for name, value in values.items() if name not in known}


def _like(leaf: Any, value: Any) -> Any:
    """A Python number stays one, so that it is frozen into the file as the example's is."""
    plain = isinstance(leaf, (bool, int, float)) and isinstance(value, torch.Tensor) and value.dim() == 0
    return value.item() if plain else value


def nest(values: Mapping[str, Any], where: str) -> NamedInputs:
    """Dicts and lists out of paths, when no other case shows the nesting."""
    tree: dict[Any, Any] = {}
    for path, value in values.items():
        match = _PATH.fullmatch(path)
        if not match:
            near = re.sub(r"\[(['\"])(\w+)\1\]", r".\2", path)
            others = [name for name in values if name != path and _PATH.fullmatch(name)]
            hint = "Write a parameter of forward, then .key for a dict and [0] for a list: batch.images, states[0]."
            if _PATH.fullmatch(near):
                hint = f"Did you mean {near}? {hint}"
            if others:
                hint += f" There is also: {', '.join(others)}."
            raise UsageError(f"{path!r} is no name of an input", where=where, hint=hint)
        steps: list[Any] = [match["name"]]
        for key, index in re.findall(r"\.(\w+)|\[(\d+)\]", match["steps"]):
            steps.append(key or int(index))
        at = tree
        for step in steps[:-1]:
            at = at.setdefault(step, {})
        at[steps[-1]] = value
    return {name: _lists(value) for name, value in tree.items()}


def _lists(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if tree and sorted(map(str, tree)) == sorted(map(str, range(len(tree)))):
        return [_lists(tree[at]) for at in range(len(tree))]
    return {key: _lists(value) for key, value in tree.items()}
