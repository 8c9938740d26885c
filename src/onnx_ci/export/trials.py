"""The inputs on which a rewrite is checked: the cases, those at the edges of declared dims, and some of its own."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from onnx_ci.export import arguments, cases, values
from onnx_ci.export.ranges import declared_range, is_declared
from onnx_ci.export.types import Declared, RunCase

_DRAWS = 3
_IMAGE_AXES = 3
"""A constant and a ramp are tried for floats of so many axes at least: images, signals, sequences of features."""


def known(promised: Declared, example: RunCase, user: Sequence[RunCase]) -> list[RunCase]:
    """The user's cases, or the example where there is none, and the cases at the edges of what is declared.

    A case that contradicts the declaration is left to the rule that says so.
    """
    own = [case for case in user if not case.problems] or [example]
    ranges = {
        name: (declared_range(dim).least, declared_range(dim).most)
        for name, dim in promised.dims.items()
        if is_declared(dim)
    }
    return [*own, *cases.boundary_cases(promised, ranges, example, user)]


def extra(promised: Declared, case: RunCase, user: Sequence[RunCase]) -> Iterator[RunCase]:
    """More values at the sizes of a case: random draws, and for images one of a single value and a ramp."""
    for number in range(1, _DRAWS + 1):
        yield _drawn(promised, case, user, f"random {number}")
    drawn = _drawn(promised, case, user, "constant and ramp")
    if any(_is_image(leaf) for leaf in arguments.paths(drawn.inputs).values()):
        for kind, change in (("constant", _constant), ("ramp", _ramp)):
            yield replace(drawn, name=f"{kind} at {case.name}", inputs=arguments.rebuild(drawn.inputs, change))


def _drawn(promised: Declared, case: RunCase, user: Sequence[RunCase], what: str) -> RunCase:
    items = {item.path: item for item in promised.inputs}
    honest = [one for one in user if not one.problems]
    rng = np.random.default_rng(zlib.crc32(f"{what}/{sorted(case.dims.items())}".encode()))

    def draw(path: str, leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or path not in items:
            return leaf
        item, seen = items[path], cases.seen_values(path, honest)
        ranged = item.values is not None or item.low is not None or item.high is not None
        if not ranged and not leaf.dtype.is_floating_point and not leaf.dtype.is_complex:
            return leaf  # indices, lengths and masks mean something: the case's own are kept
        return values.make(item, leaf.dtype, seen, case.dims, rng)

    return RunCase(f"{what} at {case.name}", "boundary", what, arguments.rebuild(case.inputs, draw), case.dims)


def _is_image(leaf: Any) -> bool:
    if not isinstance(leaf, torch.Tensor) or not leaf.dtype.is_floating_point or leaf.dim() < _IMAGE_AXES:
        return False
    return int(torch.unique(leaf).numel()) > 2  # two values are a mask


def _constant(_: str, leaf: Any) -> Any:
    return torch.full_like(leaf, float(leaf.double().mean())) if _is_image(leaf) else leaf


def _ramp(_: str, leaf: Any) -> Any:
    return leaf.reshape(-1).sort().values.reshape(leaf.shape) if _is_image(leaf) else leaf
