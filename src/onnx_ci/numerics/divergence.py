"""Where a graph first goes wrong: inner values beside PyTorch's, and which of them is a cause. Records in, records out.

A value over its budget is *divergent*. One that all its divergent neighbours come after is a *candidate*; whether it is
a cause or only carries what its inputs brought is told by running it alone on PyTorch's inputs (`onnx_ci.divergence`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from onnx_ci.numerics import budget
from onnx_ci.numerics.comparison import OutputComparison
from onnx_ci.numerics.dtypes import Array, Value, float_dtype, float_dtype_named, real_parts, widen
from onnx_ci.numerics.exact import CaseContext
from onnx_ci.numerics.figures import relative_error
from onnx_ci.numerics.layers import compare_outputs
from onnx_ci.numerics.ties import ScorePair
from onnx_ci.numerics.words import at_text, sci
from onnx_ci.records.base import record
from onnx_ci.records.model import ParitySpec

_MOST_ITEMS = 1000  # one of more items may carry so much of a small error that its own limit breaks
_JUMP = 10.0
_LEAST_JUMP = 1e-6  # below, an error ten times that of its inputs is still a few units in the last place
_LAYERS = {"parity.shape": "another shape", "parity.dtype": "another dtype", "parity.nonfinite": "NaN or infinity"}


@record
class Gap:
    """One inner value of a graph beside the reference.

    Attributes:
        times: The error over its budget; infinity where no budget can hold it: another shape, NaN, a whole number.
        text: The figure that decides, in words.
        e_torch: PyTorch's own relL2 against float64; None where that is not known.
    """

    name: str
    divergent: bool
    times: float
    text: str
    e_torch: float | None = None
    at: list[int] | None = None
    expected: float | str | None = None
    actual: float | str | None = None


@record
class Trail:
    """What the gaps of all values say together.

    Attributes:
        candidates: Divergent values that may be the cause, the likeliest first.
        carriers: The other divergent values on the way to the output: they got it from their inputs.
        amplifiers: Values at which PyTorch's own error jumps by ten times and more: the model's conditioning, no fault.
    """

    candidates: list[str]
    carriers: list[str]
    amplifiers: list[str]


def gap(
    name: str,
    actual: Value,
    expected: Value,
    exact: Value,
    *,
    allowed: float = 4.0,
    unit: float = 1.0,
    why: str = "",
    scores: Mapping[str, Value] | None = None,
    who: str = "PyTorch",
) -> Gap:
    """Judges one value as parity judges an output: a multiple of PyTorch's own error, and never below the floor.

    Args:
        name: Of the value.
        actual: From the graph.
        expected: From PyTorch in its own dtype.
        exact: From PyTorch in float64; None where there is no such run.
        allowed: The budget: how many times PyTorch's error.
        unit: The largest magnitude among the inputs.
        why: Why `exact` is not there.
        scores: What the value was made of, the same on both sides: an index that flips where they tie is no divergence.
        who: Made `expected`, in words.
    """
    actual = _like(actual, expected)
    exact = _like(exact, expected, cast=False)
    if _surely_within(actual, expected):
        return replace(_right(name, "within the floor"), e_torch=_own_error(expected, exact))
    spec = ParitySpec(budget=allowed)
    context = CaseContext(spec=spec, unit=unit, no_oracle=why if exact is None else "", unsure=frozenset())
    for other, value in (scores or {}).items():
        if isinstance(value, np.ndarray) and float_dtype(value.dtype) is not None:
            context.scores[other] = ScorePair(expected=real_parts(value), actual=real_parts(value))
    truth = {} if exact is None else {name: exact}
    items = compare_outputs([name], {name: expected}, {name: actual}, truth, context)
    gaps = [_gap_of(item, name, allowed, who) for item in items]
    return max(gaps, key=lambda one: (one.divergent, one.times))


def _surely_within(actual: Value, expected: Value) -> bool:
    """Whether a float value is so near to PyTorch's that no figure can break its limit, in four passes over it.

    By a quarter of the floor: what PyTorch itself errs, times the budget, makes up for the rest.
    """
    if not isinstance(actual, np.ndarray) or not isinstance(expected, np.ndarray) or actual.dtype != expected.dtype:
        return False
    if actual.shape != expected.shape or not actual.size or actual.dtype.name not in ("float32", "float64"):
        return False
    if actual.shape and actual.shape[0] > _MOST_ITEMS:
        return False
    kind = float_dtype(actual.dtype)
    assert kind is not None  # a dtype with a floor
    with np.errstate(all="ignore"):
        apart, flat = (actual - expected).reshape(-1), expected.reshape(-1)
        near = np.dot(apart, apart) <= (0.25 * kind.floor) ** 2 * np.dot(flat, flat)
        return bool(near) and bool(np.abs(apart).max() <= 0.5 * kind.floor * np.abs(flat).max())


def _own_error(expected: Value, exact: Value) -> float | None:
    if not isinstance(expected, np.ndarray) or not isinstance(exact, np.ndarray) or expected.shape != exact.shape:
        return None
    wide = exact.reshape(-1)
    with np.errstate(all="ignore"):
        apart, norm = expected.reshape(-1) - wide, float(np.dot(wide, wide))
        return math.sqrt(float(np.dot(apart, apart)) / norm) if norm > 0.0 else None


def function_gap(name: str, actual: Value, exact: Value, limit: float) -> Gap:
    """Judges one value of a graph that ran in float64: relL2 against PyTorch in float64, and nothing is rounding."""
    if not isinstance(actual, np.ndarray) or not isinstance(exact, np.ndarray):
        return Gap(name=name, divergent=False, times=0.0, text="no tensor")
    actual = _like(actual, exact)
    assert isinstance(actual, np.ndarray)
    if actual.shape != exact.shape:
        return _wrong(name, f"shape {list(actual.shape)} instead of {list(exact.shape)}")
    if float_dtype(exact.dtype) is None:
        differ = np.asarray(actual != exact)
        return _wrong(name, f"{int(differ.sum())} of {differ.size} elements differ") if differ.any() else _right(name)
    if bool((np.isnan(actual) != np.isnan(exact)).any()):
        return _wrong(name, "NaN at other places")
    error = relative_error(actual, exact)
    at, where = _worst(actual, exact)
    return Gap(
        name=name,
        divergent=not error <= limit,
        times=error / limit if math.isfinite(error) else math.inf,
        text=f"relL2 {sci(error)} in float64, {sci(error / limit)} times what is allowed",
        at=where,
        expected=None if at is None else float(widen(exact.reshape(-1)[at : at + 1])[0]),
        actual=None if at is None else float(widen(actual.reshape(-1)[at : at + 1])[0]),
    )


def trail(gaps: Sequence[Gap], parents: Mapping[str, Sequence[str]], outputs: Sequence[str]) -> Trail:
    """Follows the divergent values back from the outputs that failed.

    First come the beginnings of the unbroken chains that end in an output; then divergent values farther up, from which
    a chain may have gone on below its budget. Each in topological order.

    Args:
        gaps: Of the values, in topological order.
        parents: For each value the nearest values above it that have a gap.
        outputs: Those that failed; they have a gap too, unless nothing is known of them.
    """
    order = {one.name: at for at, one in enumerate(gaps)}
    divergent = {one.name for one in gaps if one.divergent}
    above = _above(outputs, parents)
    chain = _above([name for name in outputs if name in divergent], parents, within=divergent)
    roots = [name for name in divergent & above if not divergent & set(parents.get(name, ()))]
    roots.sort(key=lambda name: (name not in chain, order[name]))
    # A chain that a healed value breaks begins below it: such a beginning has divergent values above, but no parent.
    carriers = sorted((divergent & above) - set(roots), key=order.__getitem__)
    return Trail(candidates=roots, carriers=carriers, amplifiers=_amplifiers(gaps, parents, above))


def _above(starts: Sequence[str], parents: Mapping[str, Sequence[str]], within: set[str] | None = None) -> set[str]:
    """The starts and all that leads to them, by way of values of `within` only."""
    found, todo = set(starts), list(starts)
    while todo:
        for parent in parents.get(todo.pop(), ()):
            if parent not in found and (within is None or parent in within):
                found.add(parent)
                todo.append(parent)
    return found


def _amplifiers(gaps: Sequence[Gap], parents: Mapping[str, Sequence[str]], above: set[str]) -> list[str]:
    errors = {one.name: one.e_torch for one in gaps if one.e_torch is not None and math.isfinite(one.e_torch)}
    found = []
    for name, error in errors.items():
        before = [errors[parent] for parent in parents.get(name, ()) if parent in errors]
        if name in above and before and error > _LEAST_JUMP and error >= _JUMP * max(before):
            found.append(name)
    return found


def _gap_of(item: OutputComparison, name: str, allowed: float, who: str) -> Gap:
    if item.fault is not None:
        text = f"{_LAYERS.get(item.fault.rule, 'another kind')}: {item.fault.text}"
        return _wrong(name, text) if item.fault.status == "fail" else _right(name, text)
    if item.exact is not None:
        text = f"{item.exact.differ} of {item.exact.count} elements differ"
        if not item.exact.differ:
            return _right(name, text)
        shown = {"at": item.exact.at, "expected": item.exact.expected, "actual": item.exact.actual}
        return Gap(name=name, divergent=True, times=math.inf, text=text, **shown)  # type: ignore[arg-type] # as named
    floats, kind = item.floats, float_dtype_named(item.dtype)
    if floats is None or kind is None:
        return _right(name)
    if floats.e_torch is None:
        times = item.over_default if item.over_default is not None else math.inf
        divergent, text = not times <= 1.0, f"{sci(times)} times rtol {sci(kind.rtol)} and atol {sci(kind.atol)}"
    else:
        (limit,) = budget.limits([floats], kind, allowed)
        times, divergent = budget.pressure(floats, limit), budget.status(floats, limit) == "fail"
        text = f"relL2 {sci(floats.e_runtime)}, {sci(times)} times its budget ({who} itself: {sci(floats.e_torch)})"
    return Gap(
        name=name,
        divergent=divergent,
        times=times,
        text=text,
        e_torch=None if floats.absolute else floats.e_torch,
        at=floats.at,
        expected=floats.expected,
        actual=floats.actual,
    )


def _wrong(name: str, text: str) -> Gap:
    return Gap(name=name, divergent=True, times=math.inf, text=text)


def _right(name: str, text: str = "") -> Gap:
    return Gap(name=name, divergent=False, times=0.0, text=text)


def _like(value: Value, wanted: Value, *, cast: bool = True) -> Value:
    """The value in the form of another: a lone number has one shape, and a width of its own is no divergence."""
    if not isinstance(value, np.ndarray) or not isinstance(wanted, np.ndarray):
        return value
    if value.size == wanted.size == 1:
        value = value.reshape(wanted.shape)
    if not cast or value.dtype == wanted.dtype or "O" in (value.dtype.kind, wanted.dtype.kind):
        return value
    floats = [float_dtype(array.dtype) is not None for array in (value, wanted)]
    return value.astype(wanted.dtype) if floats[0] == floats[1] else value


def _worst(actual: Array, exact: Array) -> tuple[int | None, list[int] | None]:
    if not actual.size:
        return None, None
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.nan_to_num(np.abs(widen(actual) - widen(exact)), nan=0.0, posinf=np.inf)
    at = int(apart.reshape(-1).argmax())
    return at, [int(index) for index in np.unravel_index(at, actual.shape)] if actual.ndim else []


def values_text(one: Gap) -> str:
    """The worst place: " at [0, 3]: expected 0.25, got 0.5"; empty where there is none."""
    if one.expected is None or one.actual is None:
        return ""
    shown = [f"{value:.7g}" if isinstance(value, float) else str(value) for value in (one.expected, one.actual)]
    return f"{at_text(one.at or [])}: expected {shown[0]}, got {shown[1]}"
