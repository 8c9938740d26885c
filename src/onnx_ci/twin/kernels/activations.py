"""Activations; their slopes and thresholds enter as the numbers that were written."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from onnx_ci.twin.kernels.special import erf
from onnx_ci.twin.registry import Call, kernel
from onnx_ci.twin.values import Array


def sigmoid(x: Array) -> Array:
    """Without overflow on either side."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def softplus(x: Array) -> Array:
    """log(1 + eˣ)."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def elu(x: Array, alpha: float) -> Array:
    """α(eˣ − 1) below zero."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def hard_sigmoid(x: Array, alpha: float, beta: float) -> Array:
    """A line between 0 and 1."""
    return np.minimum(np.maximum(alpha * x + beta, 0), 1)


PLAIN: dict[str, Callable[[Array], Array]] = {
    "HardSwish": lambda x: x * hard_sigmoid(x, 1 / 6, 0.5),
    "Mish": lambda x: x * np.tanh(softplus(x)),
    "Relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "Sigmoid": sigmoid,
    "Softplus": softplus,
    "Softsign": lambda x: x / (1 + np.abs(x)),
}


@kernel(*PLAIN)
def plain(call: Call, x: Array) -> Array:
    """An activation without attributes."""
    return PLAIN[call.node.op_type](x)


@kernel("Elu")
def elu_kernel(call: Call, x: Array) -> Array:
    """α(eˣ − 1) below zero."""
    return elu(x, call["alpha"])


@kernel("Celu")
def celu(call: Call, x: Array) -> Array:
    """Elu of x / α, times α."""
    alpha = call["alpha"]
    return np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha))


@kernel("Selu")
def selu(call: Call, x: Array) -> Array:
    """Elu times γ."""
    return call["gamma"] * elu(x, call["alpha"])


@kernel("LeakyRelu")
def leaky_relu(call: Call, x: Array) -> Array:
    """α·x below zero."""
    return np.where(x >= 0, x, call["alpha"] * x)


@kernel("PRelu")
def prelu(call: Call, x: Array, slope: Array) -> Array:
    """A slope for each element below zero."""
    return np.where(x >= 0, x, slope * x)


@kernel("ThresholdedRelu")
def thresholded_relu(call: Call, x: Array) -> Array:
    """Zero up to α."""
    return np.where(x > call["alpha"], x, 0)


@kernel("HardSigmoid")
def hard_sigmoid_kernel(call: Call, x: Array) -> Array:
    """A line between 0 and 1."""
    return hard_sigmoid(x, call["alpha"], call["beta"])


@kernel("Shrink")
def shrink(call: Call, x: Array) -> Array:
    """Towards zero by the bias, and to zero between ±λ."""
    limit, bias = call["lambd"], call["bias"]
    made = np.where(x < -limit, x + bias, np.where(x > limit, x - bias, 0))
    return np.asarray(made, x.dtype)


@kernel("Gelu")
def gelu(call: Call, x: Array) -> Array:
    """By erf, or by tanh's approximation of it."""
    if call["approximate"] == "tanh":
        return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return x / 2 * (1 + erf(x * math.sqrt(0.5)))


@kernel("Swish")
def swish(call: Call, x: Array) -> Array:
    """Sigmoid of α·x, times x."""
    return x * sigmoid(call["alpha"] * x)


@kernel("SwiGLU")
def swiglu(call: Call, gate: Array, x: Array) -> Array:
    """Swish of the gate, times x."""
    return swish(call, gate) * x


@kernel("Softmax", "LogSoftmax")
def softmax(call: Call, x: Array) -> Array:
    """Along one axis; before opset 13 over all axes from it on."""
    axis = call["axis"]
    flat = x
    if call.version < 13:
        flat = x.reshape(math.prod(x.shape[:axis]) if axis >= 0 else math.prod(x.shape[: x.ndim + axis]), -1)
        axis = 1
    made = log_softmax_of(flat, axis) if call.node.op_type == "LogSoftmax" else softmax_of(flat, axis)
    return made.reshape(x.shape)


def softmax_of(x: Array, axis: int) -> Array:
    """Shifted by the largest; a row of -Inf alone gives NaN, as everywhere."""
    if not x.size:
        return x
    shifted = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return shifted / np.sum(shifted, axis=axis, keepdims=True)


def log_softmax_of(x: Array, axis: int) -> Array:
    """The logarithm of softmax, without its underflow."""
    if not x.size:
        return x
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@kernel("Hardmax")
def hardmax(call: Call, x: Array) -> Array:
    """One at the first largest, zero elsewhere."""
    axis = call["axis"]
    flat = x.reshape(math.prod(x.shape[: axis if axis >= 0 else x.ndim + axis]), -1) if call.version < 13 else x
    axis = 1 if call.version < 13 else axis
    made = np.zeros_like(flat)
    np.put_along_axis(made, np.argmax(flat, axis=axis, keepdims=True), 1.0, axis=axis)
    return made.reshape(x.shape)
