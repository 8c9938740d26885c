"""Quantizing and its inverse; integers are exact, and so is what a float64 makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnx_ci.twin.kernels.constants import dtype_of
from onnx_ci.twin.kernels.convolution import convolved
from onnx_ci.twin.kernels.windows import windows
from onnx_ci.twin.registry import Call, Unoracled, kernel
from onnx_ci.twin.values import Array

_BITS = {"int2": (-2, 1), "int4": (-8, 7), "uint2": (0, 3), "uint4": (0, 15)}


def _bounds(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Smallest and largest of an integer dtype, the packed ones included."""
    if dtype.name in _BITS:
        return _BITS[dtype.name]
    if dtype.kind not in "iu":
        raise Unoracled("QuantizeLinear", f"to {dtype.name}")
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def _spread(values: Array, call: Call, x: Array) -> Array:
    """Scales or zero points, shaped to meet x: one, one a place of an axis, or one a block of it."""
    values = np.asarray(values, np.float64)
    if values.ndim == 0 or (values.size == 1 and values.ndim == 1):
        return values.reshape(())
    axis = (1 if call["axis"] is None else call["axis"]) % x.ndim
    if call["block_size"]:
        wide = np.repeat(values, call["block_size"], axis=axis)
        return np.take(wide, range(x.shape[axis]), axis=axis)
    return values.reshape([-1 if at == axis else 1 for at in range(x.ndim)]) if values.ndim == 1 else values


def _quantized(x: Array, scale: Array, zero: Array, dtype: np.dtype[Any]) -> Array:
    low, high = _bounds(dtype)
    whole = np.clip(np.rint(x / scale) + zero, low, high)
    return np.nan_to_num(whole).astype(np.int64).astype(dtype)


@kernel("QuantizeLinear")
def quantize(call: Call, x: Array, scale: Array, zero: Array | None = None) -> Array:
    """Rounds half to even, shifts, and stops at the dtype's ends."""
    dtype = dtype_of(call["output_dtype"]) if call["output_dtype"] else np.dtype(np.uint8)
    dtype = dtype if zero is None else zero.dtype
    shift = np.zeros(()) if zero is None else _spread(zero, call, x)
    return _quantized(x.astype(np.float64), _spread(scale, call, x), shift, dtype)


@kernel("DequantizeLinear")
def dequantize(call: Call, x: Array, scale: Array, zero: Array | None = None) -> Array:
    """The distance to the zero point, times the scale."""
    shift = np.zeros(()) if zero is None else _spread(zero, call, x)
    return (x.astype(np.float64) - shift) * _spread(scale, call, x)


@kernel("DynamicQuantizeLinear")
def dynamic(call: Call, x: Array) -> tuple[Any, ...]:
    """To uint8, over the range that the values have, zero in it."""
    low, high = min(float(x.min(initial=0.0)), 0.0), max(float(x.max(initial=0.0)), 0.0)
    scale = (high - low) / 255 or 1.0
    zero = np.clip(np.rint(-low / scale), 0, 255)
    made = _quantized(x, np.array(scale), zero, np.dtype(np.uint8))
    return made, np.array(scale), np.array(zero, np.uint8)


@kernel("ConvInteger")
def conv_integer(
    call: Call, x: Array, weight: Array, x_zero: Array | None = None, weight_zero: Array | None = None
) -> Array:
    """Conv of the distances to the zero points."""
    return _conv(call, x, x_zero, weight, weight_zero).astype(np.int32)


def _conv(call: Call, x: Array, x_zero: Array | None, weight: Array, weight_zero: Array | None) -> Array:
    left = x.astype(np.float64) - (0.0 if x_zero is None else x_zero.astype(np.float64))
    right = weight.astype(np.float64)
    if weight_zero is not None:
        right = right - weight_zero.astype(np.float64).reshape([-1] + [1] * (weight.ndim - 1))
    return convolved(left, right, windows(call, x.shape[2:], weight.shape[2:]), call["group"] or 1)


@kernel("QLinearConv")
def qlinear_conv(
    call: Call,
    x: Array,
    x_scale: Array,
    x_zero: Array,
    weight: Array,
    weight_scale: Array,
    weight_zero: Array,
    scale: Array,
    zero: Array,
    bias: Array | None = None,
) -> Array:
    """Conv of quantized values, quantized again."""
    column = [-1] + [1] * (x.ndim - 2)
    made = _conv(call, x, x_zero, weight, weight_zero)
    made = made if bias is None else made + bias.reshape(column)
    made = made * (x_scale * weight_scale).reshape(column if weight_scale.size > 1 else ())
    return _quantized(made, scale, zero.astype(np.float64), zero.dtype)


@kernel("QLinearMatMul")
def qlinear_matmul(
    call: Call,
    a: Array,
    a_scale: Array,
    a_zero: Array,
    b: Array,
    b_scale: Array,
    b_zero: Array,
    scale: Array,
    zero: Array,
) -> Array:
    """Product of quantized values, quantized again."""
    left = (a.astype(np.float64) - a_zero) * a_scale
    right = (b.astype(np.float64) - b_zero) * b_scale
    return _quantized(left @ right, scale, zero.astype(np.float64), zero.dtype)
