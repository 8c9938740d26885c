"""Figures that look at the order of floats only: units in the last place, and whether the largest stays the largest."""

from __future__ import annotations

import numpy as np

from onnx_ci.numerics.dtypes import Array, Floats, float_dtype, widen


def ulp_distance(left: Array, right: Array) -> Floats:
    """Distance in units in the last place, elementwise, for two arrays of one float dtype; +0 and -0 are equal."""
    if left.dtype != right.dtype or float_dtype(left.dtype) is None:
        raise ValueError(f"units in the last place need one float dtype, got {left.dtype} and {right.dtype}")
    with np.errstate(over="ignore"):
        a, b = _ordinal(left), _ordinal(right)
        return np.where(a > b, a - b, b - a).astype(np.float64)


def argmax_agreement(actual: Array, expected: Array) -> float | None:
    """Share of rows of the last axis whose largest element stands at the same place; None for rows of one."""
    if actual.ndim == 0 or actual.shape[-1] < 2 or not actual.size:
        return None
    return float(np.mean(_argmax(actual) == _argmax(expected)))


def _ordinal(array: Array) -> Array:
    """The place of each value among all values of its dtype, as unsigned integers without a gap at zero."""
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    bits = 8 * native.dtype.itemsize
    raw = native.view(f"u{native.dtype.itemsize}").astype(np.uint64)
    half = np.uint64(1 << (bits - 1))
    return np.where(raw >= half, half - (raw - half), raw + half)


def _argmax(array: Array) -> Array:
    return np.asarray((widen(array) if array.dtype.kind == "V" else array).argmax(axis=-1))
