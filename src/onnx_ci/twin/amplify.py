"""How far the rounding of constants that the exporter made can move the outputs: the limit of parity.function."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import numpy as np
from onnx import TensorProto

from onnx_ci.twin.execute import Change
from onnx_ci.twin.model import Twin, TwinRun
from onnx_ci.twin.registry import Unoracled
from onnx_ci.twin.values import Array, Value

_ROUNDING: dict[int, float] = {
    TensorProto.FLOAT: 2.0**-24,
    TensorProto.FLOAT16: 2.0**-11,
    TensorProto.BFLOAT16: 2.0**-8,
}
"""Half a unit in the last place by the dtype that a constant is stored in, relative."""


def amplification(
    twin: Twin,
    feeds: Mapping[str, Any],
    made: Collection[str],
    seeds: int = 4,
    first: int = 0,
    keep: Collection[str] = (),
) -> dict[str, float]:
    """By output, the largest relL2 that one rounding of the named constants makes; 0 where none is named.

    An exact output is told by the share of its elements that change; infinity says that a shape does. Whole numbers are
    left alone, for nothing was rounded there, and so are the scales of Resize, which decide a size.

    Args:
        twin: The model.
        feeds: One case.
        made: Names of float constants of the main graph that are not the module's own.
        seeds: How many draws of the signs.
        first: The number of the first draw: more draws only raise what fewer found, so that a judge may ask for one,
            and for the others only where that one does not settle it.
        keep: Inner values of the main graph to tell it of as well.
    """
    return run_with_amplification(twin, feeds, made, seeds, first, keep)[1]


def run_with_amplification(
    twin: Twin,
    feeds: Mapping[str, Any],
    made: Collection[str],
    seeds: int = 4,
    first: int = 0,
    keep: Collection[str] = (),
) -> tuple[TwinRun, dict[str, float]]:
    """The plain run and the amplification, in one pass over the weights."""
    step = _steps(twin, made)
    changes: list[Change] = [{}]
    for seed in range(first, first + seeds if step else first):
        # A constant is read more than once where several nodes use it, and must move the same way each time.
        changes.append({name: partial(_moved, size=size, seed=(seed, at)) for at, (name, size) in enumerate(step)})
    try:
        plain, *moved = twin.run_all(feeds, changes, keep)
    except Unoracled:
        plain = twin.run(feeds, keep)  # raises too, or else a shape that moved no longer fits
        return plain, dict.fromkeys(plain.kept | plain.outputs, math.inf)
    largest = {
        name: max((_relative((run.kept | run.outputs)[name], value) for run in moved), default=0.0)
        for name, value in (plain.kept | plain.outputs).items()
    }
    return plain, largest


def _steps(twin: Twin, made: Collection[str]) -> list[tuple[str, float]]:
    """The constants to move, with the rounding of each."""
    fixed = {
        name for node in twin.model.graph.node if node.op_type in ("Resize", "Upsample") for name in node.input[1:]
    }
    wanted = set(made) - fixed
    found = ((name, _ROUNDING.get(tensor.data_type, 0.0)) for name, tensor in twin.float_tensors() if name in wanted)
    return [(name, size) for name, size in found if size]


def _moved(constant: Array, size: float, seed: tuple[int, int]) -> Array:
    signs = np.random.default_rng(seed).integers(0, 2, constant.shape) * 2 - 1
    return np.where(constant == np.rint(constant), constant, constant * (1 + size * signs))


def _relative(moved: Value, plain: Value) -> float:
    """relL2 over the places where both are finite (exact dtypes: the share of elements that differ).

    Infinite where a shape changes, for then nothing can be told; the largest of a sequence's.
    """
    if isinstance(plain, list) and isinstance(moved, list):
        if len(plain) != len(moved):
            return math.inf
        return max((_relative(a, b) for a, b in zip(moved, plain, strict=True)), default=0.0)
    if not isinstance(plain, np.ndarray) or not isinstance(moved, np.ndarray):
        return 0.0
    if moved.shape != plain.shape:
        return math.inf
    if plain.dtype.kind not in "fc":
        return float(np.mean(moved != plain)) if plain.size else 0.0
    both = np.isfinite(plain) & np.isfinite(moved)
    norm = float(np.linalg.norm(plain[both]))
    return float(np.linalg.norm((moved - plain)[both])) / norm if norm else 0.0
