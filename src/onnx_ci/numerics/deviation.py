"""How far a graph in float64 is from the module in float64, output by output: figures, no verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from onnx_ci.numerics import figures, layers, ties
from onnx_ci.numerics.dtypes import Array, Mask, Value, finite, float_dtype, integers, real_parts, widen
from onnx_ci.numerics.unordered import aligned
from onnx_ci.records.base import record
from onnx_ci.records.cases import Case

FLOOR = 1e-9
"""relL2 that always passes: float64 itself, through a few thousand operators."""
_DOUBT = FLOOR / 10  # below it no rounding has to be measured, on this machine or on another
Kind = Literal["float", "zero", "exact"]


@record
class Deviation:
    """How far one output of the twin is from the oracle in one case.

    Attributes:
        output: Its name; an item of a sequence is "name[2]", and `base` the name without it. A map is one vector.
        error: relL2; for exact dtypes the share of elements that differ and are not explained by a tie.
        kind: "zero": a float output that is zero but for rounding, so that `error` is the root mean square in units of
            the largest input.
        floor: An error that passes whatever was measured.
        e_torch: relL2 of PyTorch in its own dtype against the oracle.
        own: relL2 of the twin against PyTorch in its own dtype.
        fault: What keeps the two from being compared: another shape, NaN at other places.
    """

    case: Case
    output: str
    base: str
    error: float = math.inf
    kind: Kind = "float"
    floor: float = FLOOR
    e_torch: float = 0.0
    own: float = math.inf
    fault: str = ""

    @property
    def doubtful(self) -> bool:
        """Whether it takes the measure of rounding to judge it."""
        if self.fault:
            return True
        return self.kind != "zero" and not self.error <= (_DOUBT if self.kind == "float" else 0.0)


def deviations(
    case: Case, twin: Mapping[str, Value], oracle: Mapping[str, Value], expected: Mapping[str, Value], unit: float
) -> list[Deviation]:
    """Compares the outputs of one case, by name; outputs that PyTorch itself changes from call to call are left out.

    Args:
        case: Its description.
        twin: From the graph in float64.
        oracle: From the module in float64.
        expected: From the module in its own dtype.
        unit: The largest magnitude that goes into the model.
    """
    twin, expected = (aligned(case.orders, oracle, values) for values in (twin, expected))
    items = [
        item
        for name, truth in oracle.items()
        if name not in case.nondeterministic
        for item in layers.items(name, name, truth, twin.get(name), expected.get(name))
    ]
    scores = {
        output: ties.ScorePair(expected=real_parts(truth), actual=real_parts(got))
        for output, _, truth, got, _ in items
        if isinstance(got, np.ndarray) and isinstance(truth, np.ndarray) and got.shape == truth.shape
        if _is_float(truth) and _is_float(got)
    }
    flips: list[Mask] = []
    done: dict[str, Deviation] = {}
    for floats in (False, True):  # exact outputs first: an explained flip excuses the floats that it chose
        for output, base, truth, got, own in items:
            if (isinstance(truth, np.ndarray) and _is_float(truth)) is floats:
                one = Deviation(case=case, output=output, base=base)
                done[output] = _deviation(one, got, truth, own, unit, scores, flips)
    return [done[output] for output, *_ in items]


def _deviation(
    one: Deviation,
    got: Value,
    truth: Value,
    own: Value,
    unit: float,
    scores: Mapping[str, ties.ScorePair],
    flips: list[Mask],
) -> Deviation:
    if not isinstance(got, np.ndarray) or not isinstance(truth, np.ndarray):
        wrong = layers.structure_fault(truth, got)
        return replace(one, fault=wrong.text) if wrong else replace(one, error=0.0, kind="exact")
    if got.shape != truth.shape:
        return replace(one, fault=f"another shape, expected {_shape(truth)}, got {_shape(got)}")
    same = own if isinstance(own, np.ndarray) and own.shape == truth.shape else None
    if not _is_float(truth):
        return replace(one, kind="exact", error=_differing(got, truth, same, scores, flips))
    return _floats(one, got, truth, same, unit, flips)


def _floats(one: Deviation, got: Array, truth: Array, own: Array | None, unit: float, flips: list[Mask]) -> Deviation:
    left_out = layers.chosen_by_flips(truth, flips)
    got, truth = _parts(got), _parts(truth)
    if left_out is not None and left_out.shape != truth.shape:
        left_out = np.repeat(left_out[..., None], 2, axis=-1)
    wrong = layers.nonfinite_fault(truth, got, None)
    if wrong is not None and own is not None and layers.nonfinite_fault(_parts(own), got, None) is None:
        # PyTorch in its own dtype has them where the file has: a fully masked row, by another kernel than float64's.
        kind = float_dtype(real_parts(own).dtype)
        return replace(one, error=figures.relative_error(got, _parts(own)), floor=kind.floor if kind else FLOOR)
    if wrong is not None:
        return replace(one, fault=f"NaN or infinity stands at other places, {wrong.text}")
    mine = truth if own is None else real_parts(own)
    if not np.array_equal(finite(mine), finite(truth)):
        mine, own = truth, None  # what overflows in the smaller dtype is that dtype's affair
    found = figures.measure(got, mine, truth, leave_out=left_out, unit=unit)
    kind = float_dtype(mine.dtype)
    if found.absolute:
        return replace(one, error=found.e_runtime, kind="zero", floor=kind.floor if kind else FLOOR)
    apart = math.inf if own is None else figures.relative_error(got, widen(mine))
    return replace(one, error=found.e_runtime, e_torch=found.e_torch or 0.0, own=apart)


def _differing(
    got: Array, truth: Array, own: Array | None, scores: Mapping[str, ties.ScorePair], flips: list[Mask]
) -> float:
    """The share of elements that differ where PyTorch agrees with its own float64 form and no scores tie."""
    if truth.dtype.kind in "OUS" or got.dtype.kind in "OUS":
        pairs = zip(got.reshape(-1), truth.reshape(-1), strict=True)
        return sum(str(a) != str(b) for a, b in pairs) / max(1, truth.size)
    mine, theirs = integers(got), integers(truth)
    explained = ties.explain(theirs, mine, None if own is None else integers(own), scores).places
    flips.append(explained)
    left = np.asarray(mine != theirs, np.bool_) & ~explained
    return float(left.mean()) if left.size else 0.0


def _is_float(array: Array) -> bool:
    return float_dtype(array.dtype) is not None


def _parts(array: Array) -> Array:
    return widen(real_parts(array))


def _shape(array: Array) -> str:
    return f"[{', '.join(map(str, array.shape))}]"
