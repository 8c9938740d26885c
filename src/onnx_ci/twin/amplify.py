"""How far the rounding of constants that the exporter made can move the outputs: the limit of parity.function."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
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


_DRAWS = 4
_WIDER = 64
_STILL = 1e-10
"""relL2 that no jump is as small as."""


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
        made: Names of float constants that are not the module's own.
        seeds: How many draws of the signs.
        first: The number of the first draw: more draws only raise what fewer found, so that a judge may ask for one,
            and for the others only where that one does not settle it.
        keep: Inner values of the main graph to tell it of as well.
    """
    return run_with_amplification(twin, feeds, made, seeds, first, keep)[1]


def draws(twin: Twin, feeds: Mapping[str, Any], made: Collection[str]) -> Iterator[dict[str, float]]:
    """The amplification as closely as it is asked for: of one draw, then of four, which is the same or more."""
    found: dict[str, float] = {}
    for first, seeds in ((0, 1), (1, _DRAWS - 1)) if made else ():
        found = _larger(found, amplification(twin, feeds, made, seeds, first))
        yield found


def jumps(
    twin: Twin, feeds: Mapping[str, Any], made: Collection[str], found: Mapping[str, float | None]
) -> Iterator[dict[str, float]]:
    """Once, what rounding can do where something jumps; 0 elsewhere.

    A value that is rounded, compared or chosen by may lie so near its border that none of four draws crosses it, though
    the exporter's own rounding did. With wider steps of the constants, and the last places of float64 in every sum and
    product at random, some do. Where all is smooth such steps only make as many times more than `found`.
    """
    wide = [(name, size * (_WIDER if size <= _ROUNDING[TensorProto.FLOAT] else 1)) for name, size in _steps(twin, made)]
    plain = twin.run(feeds)
    try:
        shaken = [
            twin.run(feeds, change=_change(wide, seed), noise=np.random.default_rng(seed)) for seed in range(_DRAWS)
        ]
    except Unoracled:
        yield dict.fromkeys(plain.outputs, math.inf)
        return
    smooth = {name: 2 * _WIDER * (found.get(name) or 0.0) + _STILL for name in plain.outputs}
    yield {name: size if size > smooth[name] else 0.0 for name, size in _largest(plain, shaken).items()}


def measured(twin: Twin, feeds: Mapping[str, Any], made: Collection[str]) -> Iterator[dict[str, float]]:
    """What rounding can do, by output, as closely as it is asked for: the draws, and at last what jumps."""
    found: dict[str, float] = {}
    for found in draws(twin, feeds, made):
        yield found
    for more in jumps(twin, feeds, made, found):
        yield _larger(found, more)


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
        changes.append(_change(step, seed))
    try:
        plain, *moved = twin.run_all(feeds, changes, keep)
    except Unoracled:
        plain = twin.run(feeds, keep)  # raises too, or else a shape that moved no longer fits
        return plain, dict.fromkeys(plain.kept | plain.outputs, math.inf)
    return plain, _largest(plain, moved)


def _largest(plain: TwinRun, moved: Sequence[TwinRun]) -> dict[str, float]:
    return {
        name: max((_relative((run.kept | run.outputs)[name], value) for run in moved), default=0.0)
        for name, value in (plain.kept | plain.outputs).items()
    }


def _larger(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {name: max(one.get(name, 0.0), other.get(name, 0.0)) for name in {**one, **other}}


def _change(step: Sequence[tuple[str, float]], seed: int) -> Change:
    """A constant is read more than once where several nodes use it, and must move the same way each time."""
    return {name: partial(_moved, size=size, seed=seed, at=at) for at, (name, size) in enumerate(step)}


def _steps(twin: Twin, made: Collection[str]) -> list[tuple[str, float]]:
    """The constants to move, with the rounding of each."""
    fixed = {
        before + name
        for before, step in twin.steps()
        if step.node.op_type in ("Resize", "Upsample")
        for name in step.node.input[1:]
    }
    wanted = set(made) - fixed
    found = {name: _ROUNDING.get(tensor.data_type, 0.0) for name, tensor in twin.float_tensors() if name in wanted}
    return [(name, size) for name, size in found.items() if size]


def _moved(constant: Array, size: float, seed: int, at: int) -> Array:
    """Two draws in a row go opposite ways, so that a number alone goes both, and a jump on either side is seen."""
    signs = np.random.default_rng((seed // 2, at)).integers(0, 2, constant.shape) * 2 - 1
    signs = -signs if seed % 2 else signs
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
