"""Constants and casts; float16, bfloat16, float32 and float64 are all float64 here, so casts among them do nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_ci.twin.attributes import meant
from onnx_ci.twin.registry import Call, Elsewhere, Unoracled, kernel
from onnx_ci.twin.values import Array, Value, widened

_PACKED = {"int2", "int4", "uint2", "uint4"}
_WIDENED = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}


def dtype_of(element: int) -> np.dtype[Any]:
    """The dtype in the twin of an ONNX element type."""
    if element in _WIDENED:
        return np.dtype(np.float64)
    if element == TensorProto.STRING:
        return np.dtype(object)
    return np.dtype(helper.tensor_dtype_to_np_dtype(element))


@kernel("Constant")
def constant(call: Call) -> Value:
    """A tensor, or numbers or text in an attribute; floats as their shortest decimal."""
    given = call.attributes
    if "value" in given:
        return tensor(given["value"])
    for name, dtype in (("value_float", np.float64), ("value_int", np.int64), ("value_string", object)):
        for key in (name, f"{name}s"):
            if key in given:
                return np.array(given[key], dtype)
    raise Elsewhere


def tensor(message: onnx.TensorProto) -> Array:
    """A tensor in an attribute."""
    return widened(numpy_helper.to_array(message))


@kernel("ConstantOfShape")
def constant_of_shape(call: Call, shape: Array) -> Array:
    """Filled with zeros where no value is given; a number that a forward wrote is often kept here."""
    value = np.zeros(()) if call["value"] is None else written(numpy_helper.to_array(call["value"]))
    return np.full(tuple(shape), value, value.dtype)


def written(value: Array) -> Array:
    """The one number of a tensor: a float as it was written, of whichever width."""
    value = value.reshape(-1)[0]
    if value.dtype == np.float32:
        return np.array(meant(float(value)))
    if value.dtype.name not in ("float16", "bfloat16"):
        return np.array(value)
    shorter = (float(f"{float(value):.{digits}g}") for digits in range(1, 6))
    return np.array(next((number for number in shorter if value.dtype.type(number) == value), float(value)))


@kernel("Cast")
def cast(call: Call, x: Array) -> Array:
    """To an integer, a boolean or text as usual; among floats nothing happens."""
    return cast_to(x, dtype_of(call["to"]))


@kernel("CastLike")
def cast_like(call: Call, x: Array, like: Array) -> Array:
    """To another value's dtype."""
    return cast_to(x, like.dtype)


def cast_to(x: Array, dtype: np.dtype[Any]) -> Array:
    """Floats lose their fraction on the way to integers; text is parsed."""
    if x.dtype == dtype:
        return x
    if dtype.kind == "O":
        raise Unoracled("Cast", "numbers to text")
    if x.dtype.kind == "O":
        numbers = x.astype(np.float64) if dtype == np.float64 else x.astype(np.int64)
        return numbers.astype(dtype)
    if dtype.name in _PACKED:
        return x.astype(np.int64).astype(dtype)
    if dtype.name.startswith("float") and dtype != np.float64:
        raise Unoracled("Cast", f"to {dtype.name}, which rounds")
    return x.astype(dtype)


@kernel("Identity")
def identity(call: Call, x: Value) -> Value:
    """The value itself."""
    return x


@kernel("EyeLike")
def eye_like(call: Call, x: Array) -> Array:
    """Ones on a diagonal, in the dtype asked for, else the input's."""
    dtype = dtype_of(call["dtype"]) if call["dtype"] else x.dtype
    return np.eye(x.shape[0], x.shape[1], k=call["k"], dtype=dtype)


@kernel("Range")
def numbers(call: Call, start: Array, limit: Array, delta: Array) -> Array:
    """From start by delta, short of limit."""
    start, limit, delta = (np.asarray(item).reshape(()) for item in (start, limit, delta))
    count = max(int(np.ceil((limit - start) / delta)), 0)
    return np.asarray(start + np.arange(count, dtype=start.dtype) * delta, start.dtype)


@kernel(
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "ImageDecoder"
)
def no_function(call: Call, *inputs: Value) -> Value:
    """What is drawn anew each time, or decoded by a library, has no twin."""
    raise Unoracled(call.node.op_type)
