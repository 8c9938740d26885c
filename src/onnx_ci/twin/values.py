"""Values as the twin holds them: floats as float64, complex numbers as complex128, all else as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Value = Array | list[Any] | None
"""A tensor, a sequence (of values), or an empty optional; strings are arrays of object dtype."""

_NARROW = {"float16", "float32", "bfloat16"}


def widened(value: Any) -> Array:
    """An array with its floats as float64; the small formats (float8, int4) stay, since quantizing tells them apart."""
    array: Array = np.asarray(value)
    if array.dtype.name in _NARROW:
        return np.asarray(array, np.float64)
    if array.dtype.name == "complex64":
        return np.asarray(array, np.complex128)
    return np.asarray(array, object) if array.dtype.kind in "US" else array


def widened_value(value: Any) -> Value:
    """The same for sequences and optionals."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [widened_value(item) for item in value]
    return widened(value)


def is_float(array: Array) -> bool:
    """Whether an array is one of the twin's floats."""
    return array.dtype == np.float64
