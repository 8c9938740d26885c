"""What each dtype means for a comparison: its kind, its floor, and how it is widened. Arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from onnx_ci.records.base import record

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Value = Array | list[Any] | dict[Any, Any] | None
"""A tensor, a sequence of tensors or maps, a map from keys to scalars, or an empty optional.

Strings are arrays of object dtype; the keys of a map are whole numbers or text, its values arrays of one element.
"""

_SMALL_INTEGERS = ("int2", "int4", "uint2", "uint4")


@record
class FloatDtype:
    """How errors in a float dtype are judged.

    Attributes:
        bits: Of significand, the hidden one included: a unit in the last place is 2 ** (1 - bits), relative.
        floor: relL2 that always passes: a healthy provider reaches it by another order of summation alone.
        ill: relL2 of PyTorch itself above which a model is called ill-conditioned in this dtype.
        rtol: Without an oracle, allowed error relative to the element.
        atol: Without an oracle, allowed error relative to the largest element.
    """

    bits: int
    floor: float
    ill: float
    rtol: float
    atol: float

    @property
    def step(self) -> float:
        """One unit in the last place of 1.0."""
        return 2.0 ** (1 - self.bits)


_FLOATS = {
    # The floors of float32, float16, bfloat16 and float64 are measured (one mean over 512² pixels, summed in order).
    # rtol and atol are a hundred times what healthy providers show, since there is nothing to measure them against.
    "float64": FloatDtype(bits=53, floor=1e-13, ill=1e-3, rtol=1e-9, atol=1e-10),
    "float32": FloatDtype(bits=24, floor=5e-6, ill=1e-3, rtol=1e-3, atol=1e-4),
    "float16": FloatDtype(bits=11, floor=5e-3, ill=2e-2, rtol=2e-2, atol=1e-2),
    "bfloat16": FloatDtype(bits=8, floor=4e-2, ill=1.6e-1, rtol=1e-1, atol=8e-2),
}


def dtype_name(value: Value) -> str:
    """The dtype as messages and contracts name it: numpy's name, "string", "sequence(…)", "map(…)" or "optional"."""
    if value is None:
        return "optional"
    if isinstance(value, list):
        return f"sequence({dtype_name(value[0]) if value else ''})"
    if isinstance(value, dict):
        key, item = next(iter(value.items()), ("", None))
        return f"map({'string' if isinstance(key, str) else 'int64'},{dtype_name(item) if value else ''})"
    return "string" if value.dtype.kind in "OUS" else str(value.dtype.name)


def arrays_of(value: Value) -> Iterator[Array]:
    """Every array in a value, whatever it is nested in."""
    if isinstance(value, np.ndarray):
        yield value
    for inner in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        yield from arrays_of(inner)


def float_dtype(dtype: np.dtype[Any]) -> FloatDtype | None:
    """How a float dtype is judged; None for integers, booleans, strings, and whatever else is compared exactly."""
    return float_dtype_named(dtype.name)


def float_dtype_named(name: str) -> FloatDtype | None:
    """The same, by the name that `dtype_name` gives. A complex number is judged as its two parts."""
    name = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    if not name.startswith("float") or "_" not in name:
        return _FLOATS.get(name)
    # The significand's bits stand in the name (float8_e4m3fn), so that later formats need no table.
    mantissa = name.partition("m")[2][:1]
    step = 2.0 ** -(int(mantissa) if mantissa.isdigit() else 0)
    return FloatDtype(bits=1 + round(-np.log2(step)), floor=2 * step, ill=8 * step, rtol=2 * step, atol=2 * step)


def let_in(kind: FloatDtype, rounding: str) -> FloatDtype:
    """The dtype by whose rounding errors are judged where a provider's options let a narrower float's in.

    Such options are about float32 and what is narrower; float64 they leave alone.
    """
    narrow = _FLOATS.get(rounding)
    return narrow if narrow is not None and narrow.bits < kind.bits <= _FLOATS["float32"].bits else kind


def is_string(dtype: np.dtype[Any]) -> bool:
    """Whether an array holds text."""
    return dtype.kind in "OUS"


def real_parts(array: Array) -> Array:
    """A complex array as real numbers, with a last axis of two; any other array as it is."""
    return np.stack([array.real, array.imag], axis=-1) if array.dtype.kind == "c" else array


def widen(array: Array) -> Floats:
    """Values as float64, exactly; halves and smaller go through float32, which holds them all."""
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    return array.astype(np.float64)


def integers(array: Array) -> Array:
    """Whole numbers in a dtype that numpy can compute with: the packed ones of two and four bits as int64."""
    return array.astype(np.int64) if array.dtype.name in _SMALL_INTEGERS else array


def finite(array: Array) -> Mask:
    """Where an array is neither NaN nor infinite; for exact dtypes everywhere."""
    if float_dtype(array.dtype) is None:
        return np.ones(array.shape, np.bool_)
    return np.asarray(np.isfinite(array), np.bool_)


def place(flat: int, shape: Sequence[int]) -> list[int]:
    """The index of an element by axis, from its number in C order."""
    return [int(at) for at in np.unravel_index(flat, tuple(shape))] if len(shape) else []
