"""Arithmetic, comparison and logic, element by element, broadcast as numpy does."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from onnx_ci.twin.kernels import special
from onnx_ci.twin.registry import Call, Elsewhere, Unoracled, kernel
from onnx_ci.twin.values import Array

_ONE: dict[str, Callable[[Array], Array]] = {
    "Abs": np.abs,
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "BitwiseNot": np.invert,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Erf": special.erf,
    "Exp": np.exp,
    "Floor": np.floor,
    "IsNaN": np.isnan,
    "Log": np.log,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Round": np.rint,
    "Sign": np.sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Sqrt": np.sqrt,
    "Tan": np.tan,
    "Tanh": np.tanh,
}
_TWO: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "And": np.logical_and,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Mul": np.multiply,
    "Or": np.logical_or,
    "Sub": np.subtract,
    "Xor": np.logical_xor,
}


@kernel(*_ONE)
def one(call: Call, x: Array) -> Array:
    """A function of one value."""
    return _ONE[call.node.op_type](x)


@kernel(*_TWO)
def two(call: Call, a: Array, b: Array) -> Array:
    """A function of two values."""
    _modern(call, 7)
    return _TWO[call.node.op_type](a, b)


def _modern(call: Call, since: int) -> None:
    """Before opset 7 broadcasting was asked for by attributes: the runtime knows how."""
    if call.version < since:
        raise Elsewhere


@kernel("Reciprocal")
def reciprocal(call: Call, x: Array) -> Array:
    """One over x."""
    return 1 / x


@kernel("Div")
def divide(call: Call, a: Array, b: Array) -> Array:
    """Integers are cut off towards zero; by zero they give 0, where the runtime ends the process."""
    _modern(call, 7)
    if a.dtype.kind not in "iu":
        return a / b
    whole = np.floor_divide(a, b)
    uneven = (whole * b != a) & (b != 0)
    return np.asarray(whole + (uneven & (whole < 0)), a.dtype)


@kernel("Mod")
def modulo(call: Call, a: Array, b: Array) -> Array:
    """With the divisor's sign, or with fmod the dividend's."""
    return np.fmod(a, b) if call["fmod"] else np.mod(a, b)


@kernel("Pow")
def power(call: Call, base: Array, exponent: Array) -> Array:
    """In the base's dtype."""
    _modern(call, 7)
    return np.asarray(np.power(base.astype(np.float64), exponent), base.dtype)


@kernel("BitShift")
def shift(call: Call, a: Array, b: Array) -> Array:
    """Left or right."""
    return np.left_shift(a, b) if call["direction"] == "LEFT" else np.right_shift(a, b)


@kernel("Max", "Min", "Sum", "Mean")
def many(call: Call, *inputs: Array) -> Array:
    """Over any number of values; NaN wins."""
    op = call.node.op_type
    found = reduce({"Max": np.maximum, "Min": np.minimum}.get(op, np.add), inputs)
    return found / len(inputs) if op == "Mean" else found


@kernel("Clip")
def clip(call: Call, x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    """Between two limits; the upper one wins where they cross."""
    low = call["min"] if call.version < 11 else low
    high = call["max"] if call.version < 11 else high
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


@kernel("IsInf")
def is_inf(call: Call, x: Array) -> Array:
    """Infinite, of the signs asked for."""
    up, down = x == np.inf, x == -np.inf
    return (up & bool(call["detect_positive"])) | (down & bool(call["detect_negative"]))


@kernel("Where")
def where(call: Call, condition: Array, a: Array, b: Array) -> Array:
    """One of two values."""
    return np.where(condition, a, b)


@kernel("Dropout")
def dropout(call: Call, x: Array, ratio: Array | None = None, training: Array | None = None) -> Any:
    """Nothing, unless it is asked to drop, which has no twin."""
    drops = ratio is None or bool(np.any(ratio != 0))
    if training is not None and bool(np.any(training)) and drops:
        raise Unoracled("Dropout", "training mode")
    return x, np.ones(x.shape, np.bool_)
