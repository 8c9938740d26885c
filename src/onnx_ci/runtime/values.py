"""What is wrong with the values of an array: NaN, and what lies outside of the contract's low, high or values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onnx_ci.records.contract import TensorContract

_SHOWN = 8


def wrong_values(array: np.ndarray[Any, Any], tensor: TensorContract) -> list[str]:
    """A sentence for each thing that is wrong; text is not looked at, and infinity is a value like any other."""
    if array.dtype.kind in "OUSM" or array.size == 0:
        return []
    plain = array.astype(np.float32) if array.dtype.kind == "V" else np.asarray(array)
    nan = np.isnan(plain) if plain.dtype.kind in "fc" else np.zeros(plain.shape, bool)
    found = []
    if nan.any() and "nan" not in tensor.nonfinite:
        found.append(f"{_count(nan)} NaN, the first at {_first(nan)}: what comes out would be NaN too, or worse")
    left = nan | np.isin(plain, [float(name) for name in tensor.nonfinite if name != "nan"])
    if tensor.values is not None:
        wrong = ~np.isin(plain, tensor.values) & ~left
        if wrong.any():
            allowed = ", ".join(f"{value:g}" for value in tensor.values[:_SHOWN])
            more = f" and {len(tensor.values) - _SHOWN} more" if len(tensor.values) > _SHOWN else ""
            worst = plain[wrong][0]
            found.append(f"{_count(wrong)} outside of the values {allowed}{more}: {worst} at {_first(wrong)}")
    if tensor.low is not None or tensor.high is not None:
        found += _outside(plain, left, tensor)
    return found


def _outside(array: np.ndarray[Any, Any], left: np.ndarray[Any, Any], tensor: TensorContract) -> list[str]:
    low = -math.inf if tensor.low is None else tensor.low
    high = math.inf if tensor.high is None else tensor.high
    wrong = ~((array >= low) & (array <= high)) & ~left
    if not wrong.any():
        return []
    seen = array[~left]
    range_ = f"{low:g} to {high:g}" if tensor.low is not None and tensor.high is not None else _one_end(tensor)
    return [
        f"{_count(wrong)} outside of {range_}, the first at {_first(wrong)}; they run from {seen.min()} to "
        f"{seen.max()}: was the preprocessing left out?"
    ]


def _one_end(tensor: TensorContract) -> str:
    return f"{tensor.low:g} and more" if tensor.low is not None else f"{tensor.high:g} and less"


def _count(mask: np.ndarray[Any, Any]) -> str:
    count = int(mask.sum())
    return f"{count} of {mask.size} values {'is' if count == 1 else 'are'}"


def _first(mask: np.ndarray[Any, Any]) -> list[int]:
    return [int(at) for at in np.unravel_index(int(np.argmax(mask)), mask.shape)] if mask.ndim else []
