"""Normalizations; epsilon enters as the number that was written."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnx_ci.twin.registry import Call, Unoracled, kernel
from onnx_ci.twin.values import Array


def _along(values: Array, ndim: int) -> Array:
    """One value a channel, shaped to meet (N, C, …)."""
    return values.reshape([-1] + [1] * (ndim - 2))


def _centered(x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array, Array]:
    """The values without their mean and of variance one, the mean, and one over the deviation."""
    mean = np.mean(x, axis=axes, keepdims=True)
    rest = x - mean
    inverse = 1 / np.sqrt(np.mean(rest * rest, axis=axes, keepdims=True) + epsilon)
    return rest * inverse, mean, inverse


@kernel("BatchNormalization")
def batch(call: Call, x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> Array:
    """By stored statistics; by the batch's own it has no twin."""
    if call["training_mode"] or any(call.wants(at) for at in range(1, 5)):
        raise Unoracled("BatchNormalization", "training mode")
    factor = scale / np.sqrt(variance + call["epsilon"])
    if x.ndim == 1:
        return (x - mean) * factor + bias
    made = (x - _along(mean, x.ndim)) * _along(factor, x.ndim)
    made += _along(bias, x.ndim)
    return made


@kernel("InstanceNormalization")
def instance(call: Call, x: Array, scale: Array, bias: Array) -> Array:
    """Each channel of each item by its own statistics."""
    made = _centered(x, tuple(range(2, x.ndim)), call["epsilon"])[0]
    return made * _along(scale, x.ndim) + _along(bias, x.ndim)


@kernel("GroupNormalization")
def group(call: Call, x: Array, scale: Array, bias: Array) -> Array:
    """Each group of channels by its own statistics; before opset 21 scale and bias are one a group."""
    groups = call["num_groups"]
    split = x.reshape(x.shape[0], groups, -1)
    made = _centered(split, (2,), call["epsilon"])[0].reshape(x.shape)
    if call.version < 21:
        scale, bias = (np.repeat(values, x.shape[1] // groups) for values in (scale, bias))
    return made * _along(scale, x.ndim) + _along(bias, x.ndim)


@kernel("LayerNormalization")
def layer(call: Call, x: Array, scale: Array, bias: Array | None = None) -> tuple[Any, ...]:
    """Over the last axes; mean and one over the deviation are the second and third output."""
    made, mean, inverse = _centered(x, tuple(range(call["axis"] % x.ndim, x.ndim)), call["epsilon"])
    made = made * scale
    return made if bias is None else made + bias, mean, inverse


@kernel("RMSNormalization")
def root_mean_square(call: Call, x: Array, scale: Array) -> Array:
    """Over the last axes, without a mean."""
    axes = tuple(range(call["axis"] % x.ndim, x.ndim))
    return x / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + call["epsilon"]) * scale


@kernel("MeanVarianceNormalization")
def mean_variance(call: Call, x: Array) -> Array:
    """Over the axes given; 1e-9 is added to the deviation, as the operator's definition does."""
    axes = tuple(call["axes"] or (0, 2, 3))
    rest = x - np.mean(x, axis=axes, keepdims=True)
    return rest / (np.sqrt(np.mean(rest * rest, axis=axes, keepdims=True)) + 1e-9)


@kernel("LRN")
def local_response(call: Call, x: Array) -> Array:
    """By the squares of neighbouring channels."""
    size, channels = call["size"], x.shape[1]
    before = (size - 1) // 2
    padded = np.zeros((x.shape[0], channels + size - 1, *x.shape[2:]))
    padded[:, before : before + channels] = x * x
    total = sum(padded[:, at : at + channels] for at in range(size))
    return x / (call["bias"] + call["alpha"] / size * total) ** call["beta"]


@kernel("LpNormalization")
def norm(call: Call, x: Array) -> Array:
    """By the norm along an axis; a row of zeros stays."""
    size = np.abs(x) if call["p"] == 1 else x * x
    total = np.sum(size, axis=call["axis"], keepdims=True)
    total = total if call["p"] == 1 else np.sqrt(total)
    return x / np.where(total == 0, 1, total)
