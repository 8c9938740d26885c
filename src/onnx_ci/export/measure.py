"""Reads the dims of a case from its shapes, and says where they contradict the declaration."""

from __future__ import annotations

from dataclasses import replace

import torch

from onnx_ci.export import arguments
from onnx_ci.export.axes import names_in, size_of, solve
from onnx_ci.export.types import Declared, DeclaredInput, RunCase
from onnx_ci.records.model import DimSpec


def measure(case: RunCase, promised: Declared) -> RunCase:
    """The case with its dims, read from its shapes, and with what contradicts the declaration."""
    found: dict[str, int] = {}
    problems: list[str] = []
    leaves = arguments.paths(case.inputs)
    sums: list[tuple[str, str, int]] = []
    for item in promised.inputs:
        leaf = leaves.get(item.path)
        if not isinstance(leaf, torch.Tensor):
            problems.append(f"{item.path} is {leaf!r:.40} here and a tensor in the example")
        elif leaf.dim() != len(item.axes):
            problems.append(f"{item.path} has shape {list(leaf.shape)}, declared {item.axes}")
        else:
            _measure_tensor(item, leaf, found, sums, problems)
    for where, axis, size in sums:  # what they are sums of stands elsewhere
        problems += _measure_sum(where, axis, size, found)
    known = {item.path for item in promised.inputs}
    extra = [path for path, leaf in leaves.items() if isinstance(leaf, torch.Tensor) and path not in known]
    problems += [f"{path} is a tensor here and none in the example" for path in extra]
    for name, size in found.items():
        problems += _outside(name, size, promised.dims.get(name, DimSpec()))
    return replace(case, dims=found, problems=problems)


def _measure_tensor(
    item: DeclaredInput,
    leaf: torch.Tensor,
    found: dict[str, int],
    sums: list[tuple[str, str, int]],
    problems: list[str],
) -> None:
    for at, (axis, size) in enumerate(zip(item.axes, leaf.shape, strict=True)):
        if isinstance(axis, int):
            if axis != size:
                problems.append(f"axis {at} of {item.path} is {size}, declared {axis}")
            continue
        if len(names_in(axis)) > 1:
            sums.append((f"axis {at} of {item.path}", axis, size))
            continue
        solved = solve(axis, size, {})
        if solved is None:
            problems.append(f"axis {at} of {item.path} is {size}, which is no {axis}")
            continue
        name, value = solved
        if found.setdefault(name, value) != value:
            problems.append(f"{name} is {found[name]} and, in axis {at} of {item.path}, {value}")


def _measure_sum(where: str, axis: str, size: int, found: dict[str, int]) -> list[str]:
    """What is wrong with an axis of several dims; the one that stands nowhere else follows from it."""
    names = sorted(names_in(axis))
    known = {name: found[name] for name in names if name in found}
    if len(known) == len(names) and size_of(axis, known) == size:
        return []
    solved = solve(axis, size, known) if len(known) < len(names) else None
    if solved is None:
        sizes = ", ".join(f"{name} {value}" for name, value in known.items())
        return [f"{where} is {size}, which is no {axis} ({sizes})"]
    found[solved[0]] = solved[1]
    return []


def _outside(name: str, size: int, dim: DimSpec) -> list[str]:
    low_ok = dim.min is None or size >= dim.min
    high_ok = dim.max is None or size <= dim.max
    said = []
    if not (low_ok and high_ok):
        ends = f"{dim.min if dim.min is not None else 0} to {dim.max if dim.max is not None else 'any size'}"
        said.append(f"{name} is {size}, outside the declared {ends}")
    if size % dim.multiple_of:
        said.append(f"{name} is {size}, no multiple of {dim.multiple_of}")
    return said
