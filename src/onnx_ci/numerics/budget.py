"""The budget: what a float output may err, from what PyTorch itself errs over all cases of that output."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from onnx_ci.numerics.dtypes import FloatDtype, let_in
from onnx_ci.numerics.figures import Measures
from onnx_ci.records.base import record
from onnx_ci.records.model import ParitySpec
from onnx_ci.records.result import Status

_CAP = 4.0  # one ill-conditioned case must not loosen the others: what it adds to the pool is capped at 4 medians
_FEW = 4.0  # effective elements: known from fewer, ...
_CHANCE = 10.0  # ... an excess of less than this many times the limit may be chance
_GROSS = 0.01  # what special values must be off by
_ITEM = 10.0  # an item may carry that much more than its output: in a batch of 256 one may carry all, 16 times the mean


@record
class Limits:
    """What one output of one case may err.

    Attributes:
        output: For `Measures.e_runtime`.
        element: For `Measures.max_abs`.
        item: For `Measures.worst_item`.
        sure: Whether a small excess is a fault: PyTorch's error is known from enough elements, and the output is not
            zero but for rounding (then it hangs on the size of inner values, which nobody measured).
    """

    output: float
    element: float
    item: float
    sure: bool


@record
class _Unit:
    """What a budget of one allows: PyTorch's error, as far as it is known."""

    output: float
    element: float
    item: float


@record
class _Pool:
    """PyTorch's error over the cases: root mean square of the (capped) values, and the elements it is known from."""

    error: float
    peak_error: float
    spread: float


def judged_by(kind: FloatDtype, spec: ParitySpec, output: str) -> tuple[FloatDtype, float]:
    """By which dtype's rounding an output is judged, and its budget: as many times larger as that rounding is."""
    wide = let_in(kind, spec.rounding)
    return wide, spec.budget_of(output) * wide.step / kind.step


def limits(cases: Sequence[Measures], kind: FloatDtype, budget: float) -> list[Limits]:
    """The limits of each case of one output: k times PyTorch's error, pooled or its own, and never below the floor.

    Its own counts too, or a case that PyTorch itself finds hard (a position table at its end) would be a false alarm;
    so equal bits always pass.
    """
    pool = _pool(cases)
    return [_limits(case, pool, kind, budget) for case in cases]


def special_limits(
    cases: Sequence[Measures], usual: Sequence[Measures], kind: FloatDtype, budget: float
) -> list[Limits]:
    """The limits of cases of special values: ten times those of the usual cases, and a hundredth at least.

    They add nothing to the pool: zeros err by nothing, equal elements all alike, saturated ones hugely. A long sum of
    equal elements even errs the same way at each step (1.5e-4 in the mean of 512² pixels), which no draw of usual ones
    does. The faults that such cases are for, another choice or another branch, are far larger.
    """
    pool = _pool(usual)
    return [_coarse(case, _limits(case, pool, kind, budget)) for case in cases]


def needed(cases: Sequence[Measures], kind: FloatDtype) -> list[float]:
    """The smallest budget with which each case of one output passes: 0 within the floor, infinite where none does."""
    pool = _pool(cases)
    return [_needed(case, _unit(case, pool), kind) for case in cases]


def element_limit(case: Measures, kind: FloatDtype, budget: float) -> float:
    """What one element may err by this case alone: a multiple of what PyTorch errs anywhere, or twice the floor."""
    return max(budget * allowance(case.spread) * case.max_abs_torch, 2 * kind.floor * case.peak)


def allowance(spread: float) -> float:
    """By how much the budget grows when PyTorch's error is known from few elements only.

    The ratio of two errors that are each a single draw is above 4 in one healthy case of six (two normal draws:
    2/π · atan(1/4) = 16 %); a lone scalar over ten cases, or a thousand values of 1/x, would fail eight times in ten.
    With this they fail in less than one of a hundred, and errors known from many elements are hardly given more.
    """
    return 1.0 + 8.0 / max(spread, 1.0)


def broken(case: Measures, limit: Limits) -> str:
    """Which of the three limits is broken, as "output", "element" or "item"; empty when all hold."""
    if not case.e_runtime <= limit.output:
        return "output"
    if not case.max_abs <= limit.element:
        return "element"
    return "" if case.worst_item <= limit.item else "item"


def status(case: Measures, limit: Limits) -> Status:
    """Pass within the limits, fail beyond them; warn where the excess may be chance."""
    if not broken(case, limit):
        return "pass"
    return "warn" if not limit.sure and pressure(case, limit) <= _CHANCE else "fail"


def pressure(case: Measures, limit: Limits) -> float:
    """How near a case is to its limits: 1 is at the nearest of them."""
    shares = (case.e_runtime / limit.output, case.max_abs / limit.element if limit.element else 0.0)
    return max(*shares, case.worst_item / limit.item)


def _limits(case: Measures, pool: _Pool, kind: FloatDtype, budget: float) -> Limits:
    unit = _unit(case, pool)
    return Limits(
        output=max(kind.floor, budget * unit.output),
        element=max(2 * kind.floor * case.peak, budget * unit.element),
        item=max(_ITEM * kind.floor, budget * unit.item),
        sure=not case.absolute and (pool.spread == 0.0 or max(case.spread, pool.spread) >= _FEW),
    )


def _coarse(case: Measures, usual: Limits) -> Limits:
    least = 0.0 if case.absolute else _GROSS
    return Limits(
        output=max(_CHANCE * usual.output, least),
        element=max(_CHANCE * usual.element, least * case.peak),
        item=max(_CHANCE * usual.item, _ITEM * least),
        sure=usual.sure,
    )


def _unit(case: Measures, pool: _Pool) -> _Unit:
    own, pooled = allowance(case.spread), allowance(pool.spread)
    output = max(own * (case.e_torch or 0.0), pooled * pool.error)
    return _Unit(
        output=output,
        element=max(own * case.max_abs_torch, pooled * pool.peak_error * case.peak),
        item=max(_ITEM * output, own * case.worst_item_torch),
    )


def _needed(case: Measures, unit: _Unit, kind: FloatDtype) -> float:
    return max(
        _times(case.e_runtime, kind.floor, unit.output),
        _times(case.max_abs, 2 * kind.floor * case.peak, unit.element),
        _times(case.worst_item, _ITEM * kind.floor, unit.item),
    )


def _times(error: float, floor: float, unit: float) -> float:
    """How many units an error is; NaN is infinitely many."""
    if error <= floor:
        return 0.0
    return error / unit if unit > 0.0 and error < math.inf else math.inf


def _pool(cases: Sequence[Measures]) -> _Pool:
    errors = _capped([case.e_torch or 0.0 for case in cases])
    peaks = _capped([case.max_abs_torch / case.peak if case.peak else 0.0 for case in cases])
    squares = sum(e * e for e in errors)
    fourths = sum(e * e * e * e / max(case.spread, 1.0) for e, case in zip(errors, cases, strict=True))
    return _Pool(error=_rms(errors), peak_error=_rms(peaks), spread=squares * squares / fourths if fourths else 0.0)


def _capped(errors: list[float]) -> list[float]:
    if not errors:
        return []
    cap = _CAP * statistics.median(errors)
    return [min(e, cap) for e in errors]


def _rms(errors: list[float]) -> float:
    return math.sqrt(sum(e * e for e in errors) / len(errors)) if errors else 0.0
