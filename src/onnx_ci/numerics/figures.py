"""The figures of two float arrays against a reference: norms, extremes, and what PyTorch itself errs.

All are of float64 differences, in blocks, so that an output of a gigabyte needs no second one. Values are scaled by a
power of two before they are squared, so that nothing overflows that fits its dtype.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from onnx_ci.numerics.dtypes import Array, Floats, Mask, finite, float_dtype, place, widen
from onnx_ci.numerics.order import argmax_agreement, ulp_distance
from onnx_ci.records.base import record

_BLOCK = 1 << 19  # elements: five float64 blocks stay in a megabyte-sized cache
_NO_DIGITS = 0.1  # an error of a tenth: not one digit of the reference is there


@record
class Measures:
    """One output of one case in numbers. "Error" is against the reference: the oracle, or PyTorch without one.

    Attributes:
        count: Elements that were compared: finite everywhere, and not left out.
        e_runtime: relL2 of the target. With `absolute`, the root mean square error in units of `unit` instead.
        e_torch: The same of PyTorch; None when PyTorch is the reference.
        absolute: The reference is zero but for rounding, so that nothing can be relative to it.
        unit: What counts as one, where the reference is zero: the largest input, at least 1.
        spread: How many elements carry PyTorch's error: 1 when a single one does; a third of them all for plain noise
            (the inverse participation ratio).
        peak: Largest magnitude of the reference (`unit` when `absolute`).
        max_abs: Largest absolute error of the target, at `at`, where the values are `expected`, `actual`, `reference`.
        max_abs_torch: Largest absolute error of PyTorch.
        max_rel: Largest error relative to the element, among elements above the floor of the dtype.
        ulp: Largest distance of the target from PyTorch in units in the last place.
        worst_item: Largest error of one item of the first axis, relative to the larger of its norm and the items' rms.
        worst_item_torch: The same of PyTorch.
    """

    count: int
    e_runtime: float
    e_torch: float | None
    absolute: bool
    unit: float
    spread: float
    peak: float
    max_abs: float
    at: list[int]
    expected: float
    actual: float
    reference: float
    max_abs_torch: float
    max_rel: float | None
    cosine: float | None
    ulp: float | None
    argmax_agreement: float | None
    worst_item: float
    worst_item_at: int
    worst_item_torch: float


def relative_error(actual: Array, reference: Array) -> float:
    """relL2: ``‖actual - reference‖₂ / ‖reference‖₂`` in float64 over places where both are finite.

    Returns:
        0.0 for equal arrays, empty ones too; infinity where only the reference is zero.

    Raises:
        ValueError: The shapes differ.
    """
    if actual.shape != reference.shape:
        raise ValueError(f"shapes differ: {actual.shape} and {reference.shape}")
    keep = finite(actual) & finite(reference)
    sums = _accumulate(actual, None, reference, keep)
    return _ratio(sums.actual_error, sums.norm)


def measure(
    actual: Array,
    expected: Array,
    oracle: Array | None = None,
    *,
    leave_out: Mask | None = None,
    unit: float = 1.0,
) -> Measures:
    """Takes all figures of a float output of one case.

    Args:
        actual: From the target.
        expected: From PyTorch, of the same dtype and shape.
        oracle: From PyTorch in float64, of the same shape; None where there is none.
        leave_out: True where an element is not to be compared, since an explained flip of an index chose it.
        unit: The largest magnitude that goes into the model; it scales the floor where the reference is zero.
    """
    reference = expected if oracle is None else oracle
    if not actual.shape == expected.shape == reference.shape:
        raise ValueError(f"shapes differ: {actual.shape}, {expected.shape} and {reference.shape}")
    keep = finite(actual) & finite(expected) & finite(reference)
    if leave_out is not None:
        keep &= ~leave_out
    sums = _accumulate(actual, None if oracle is None else expected, reference, keep)
    return _figures(sums, actual, expected, reference, oracle is not None, keep, max(1.0, unit))


def elements_beyond(actual: Array, reference: Array, limit: float, leave_out: Mask | None = None) -> float:
    """Share of the compared elements that differ by more than `limit`."""
    keep = finite(actual) & finite(reference)
    if leave_out is not None:
        keep &= ~leave_out
    total = int(keep.sum())
    if not total:
        return 0.0
    a, r, k = actual.reshape(-1), reference.reshape(-1), keep.reshape(-1)
    far = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for part in _blocks(a.size):
            within = np.abs(widen(a[part]) - widen(r[part])) <= limit
            far += int((~within & k[part]).sum())
    return far / total


class _Sums:
    """What one pass over the blocks adds up; errors are scaled by `scale`, a power of two near the largest value."""

    def __init__(self, items: int, scale: float) -> None:
        self.scale = scale
        self.norm = self.actual_norm = self.dot = self.actual_error = self.torch_error = self.torch_fourth = 0.0
        self.count = 0
        self.peak = self.max_torch = 0.0
        self.max_abs, self.at = -1.0, -1
        self.item_norm, self.item_error, self.item_torch = (np.zeros(items) for _ in range(3))


def _accumulate(actual: Array, expected: Array | None, reference: Array, keep: Mask) -> _Sums:
    flat = [array.reshape(-1) for array in (actual, reference)]
    torch_flat = None if expected is None else expected.reshape(-1)
    kept = keep.reshape(-1)
    items = actual.shape[0] if actual.ndim else 1
    row = max(1, actual.size // max(1, items))
    sums = _Sums(items, _power_of_two(_peak(flat[1], kept)))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for part in _blocks(actual.size):
            k = kept[part]
            a, r = (np.where(k, widen(array[part]), 0.0) / sums.scale for array in flat)
            t = r if torch_flat is None else np.where(k, widen(torch_flat[part]), 0.0) / sums.scale
            _add(sums, a, t, r, k, part.start, row)
    return sums


def _add(sums: _Sums, a: Floats, t: Floats, r: Floats, kept: Mask, start: int, row: int) -> None:
    error, torch_error = np.abs(a - r), np.abs(t - r)
    squares = error * error, torch_error * torch_error, r * r
    sums.count += int(kept.sum())
    sums.actual_error += float(squares[0].sum())
    sums.torch_error += float(squares[1].sum())
    sums.norm += float(squares[2].sum())
    sums.torch_fourth += float((squares[1] * squares[1]).sum())
    sums.actual_norm += float((a * a).sum())
    sums.dot += float((a * r).sum())
    sums.peak = max(sums.peak, float(np.abs(r).max()))
    sums.max_torch = max(sums.max_torch, float(torch_error.max()))
    worst = int(np.where(kept, error, -1.0).argmax())
    if kept[worst] and float(error[worst]) > sums.max_abs:
        sums.max_abs, sums.at = float(error[worst]), start + worst
    first = start // row
    edges = np.maximum(np.arange(first, (start + len(a) - 1) // row + 1) * row - start, 0)
    for total, square in zip((sums.item_error, sums.item_torch, sums.item_norm), squares, strict=True):
        total[first : first + len(edges)] += np.add.reduceat(square, edges)


def _figures(
    sums: _Sums, actual: Array, expected: Array, reference: Array, oracled: bool, keep: Mask, unit: float
) -> Measures:
    kind = float_dtype(expected.dtype)
    floor = kind.floor if kind else 0.0
    rms = math.sqrt(sums.norm / sums.count) * sums.scale if sums.count else 0.0
    no_digits = oracled and (
        sums.torch_error >= _NO_DIGITS**2 * sums.norm or (expected.dtype == np.float64 and rms <= 1e-14 * unit)
    )
    absolute = sums.norm == 0.0 or (no_digits and rms <= floor * unit)
    share = unit / sums.scale  # a float's power raises where its product is infinite
    norm = sums.count * share * share if absolute else sums.norm
    at = max(sums.at, 0)
    here = [_element(array, at) if sums.count else 0.0 for array in (expected, actual, reference)]
    items, items_torch = _items(sums, norm, absolute)
    return Measures(
        count=sums.count,
        e_runtime=_ratio(sums.actual_error, norm),
        e_torch=_ratio(sums.torch_error, norm) if oracled else None,
        absolute=absolute,
        unit=unit,
        spread=sums.torch_error * sums.torch_error / sums.torch_fourth if sums.torch_fourth else 0.0,
        peak=unit if absolute else sums.peak * sums.scale,
        max_abs=max(sums.max_abs, 0.0) * sums.scale,
        at=place(at, actual.shape) if sums.count else [],
        expected=here[0],
        actual=here[1],
        reference=here[2],
        max_abs_torch=sums.max_torch * sums.scale,
        max_rel=_max_rel(actual, reference, keep, floor * (unit if absolute else rms)),
        cosine=_cosine(sums),
        ulp=_max_ulp(actual, expected, keep),
        argmax_agreement=argmax_agreement(actual, expected),
        worst_item=float(items.max()) if items.size else 0.0,
        worst_item_at=int(items.argmax()) if items.size else 0,
        worst_item_torch=float(items_torch.max()) if items.size else 0.0,
    )


def _element(array: Array, at: int) -> float:
    return float(widen(array.reshape(-1)[at : at + 1])[0])


def _items(sums: _Sums, norm: float, absolute: bool) -> tuple[Floats, Floats]:
    """Errors of each item of the first axis, of the target and of PyTorch; NaN and overflow count as infinite."""
    count = len(sums.item_norm)
    mean = norm / count if count else 0.0
    below = np.full(count, mean) if absolute else np.maximum(sums.item_norm, mean)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        both = [np.where(e == 0.0, 0.0, np.sqrt(e / below)) for e in (sums.item_error, sums.item_torch)]
    return np.nan_to_num(both[0], nan=np.inf), np.nan_to_num(both[1], nan=np.inf)


def _max_rel(actual: Array, reference: Array, keep: Mask, floor: float) -> float | None:
    a, r, k = actual.reshape(-1), reference.reshape(-1), keep.reshape(-1)
    largest: float | None = None
    with np.errstate(over="ignore", under="ignore"):
        for part in _blocks(a.size):
            wide = widen(r[part])
            above = k[part] & (np.abs(wide) > floor)
            if above.any():
                base = wide[above]
                found = float((np.abs(widen(a[part][above]) - base) / np.abs(base)).max())
                largest = found if largest is None else max(largest, found)
    return largest


def _max_ulp(actual: Array, expected: Array, keep: Mask) -> float | None:
    if actual.dtype != expected.dtype or actual.dtype.name.startswith(("float4_", "float6_")) or not keep.any():
        return None
    a, e, k = actual.reshape(-1), expected.reshape(-1), keep.reshape(-1)
    return max(
        float(ulp_distance(a[part][k[part]], e[part][k[part]]).max()) for part in _blocks(a.size) if k[part].any()
    )


def _cosine(sums: _Sums) -> float | None:
    product = math.sqrt(sums.norm) * math.sqrt(sums.actual_norm)
    return max(-1.0, min(1.0, sums.dot / product)) if 0.0 < product < math.inf else None


def _ratio(error: float, norm: float) -> float:
    """Root of a ratio of squares, where NaN and a zero norm under an error are infinite: nothing unknown passes."""
    if error == 0.0:
        return 0.0
    if not norm > 0.0 or math.isnan(error):
        return math.inf
    return math.sqrt(error / norm)


def _peak(values: Array, kept: Mask) -> float:
    peak = 0.0
    for part in _blocks(values.size):
        peak = max(peak, float(np.abs(np.where(kept[part], widen(values[part]), 0.0)).max()))
    return peak


def _power_of_two(value: float) -> float:
    """The power of two at or below a value, so that dividing by it rounds nothing; 1 for zero."""
    return math.ldexp(1.0, max(math.frexp(value)[1] - 1, -1000)) if value > 0.0 else 1.0


def _blocks(size: int) -> Iterator[slice]:
    return (slice(start, min(start + _BLOCK, size)) for start in range(0, size, _BLOCK))
