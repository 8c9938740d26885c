"""Pools; a mean counts the declared pad where it is asked to, and never what ceil mode reaches beyond it."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np

from onnx_ci.twin.kernels.windows import Windows, windows
from onnx_ci.twin.registry import Call, Elsewhere, kernel
from onnx_ci.twin.values import Array, is_float


def _moves(call: Call, x: Array) -> Windows:
    """The windows, none larger than the padded picture: there are models that pool it whole with one of thousands."""
    moves = windows(call, x.shape[2:], tuple(call["kernel_shape"]))
    padded = [b + n + a for b, n, a in zip(moves.before, moves.sizes, moves.after, strict=True)]
    kernel = zip(moves.kernel, moves.dilations, padded, strict=True)
    return replace(moves, kernel=tuple(min(k, max(-(-size // d), 1)) for k, d, size in kernel))


def _places(moves: Windows, padded: Array) -> list[Array]:
    view = moves.view(padded)
    return [view[(..., *place)] for place in np.ndindex(*moves.kernel)]


@kernel("AveragePool")
def average(call: Call, x: Array) -> Array:
    """The mean of each window."""
    moves = _moves(call, x)
    total = reduce(np.add, _places(moves, moves.padded(x, 0.0)))
    ones = np.ones((1, 1, *x.shape[2:]))
    if call["count_include_pad"]:
        ones = moves.padded(ones, 1.0, moves.after)
        rest = [max(b - a, 0) for b, a in zip(moves.beyond, moves.after, strict=True)]
        ones = np.pad(ones, [(0, 0), (0, 0), *((0, more) for more in rest)])
    else:
        ones = moves.padded(ones, 0.0)
    return total / reduce(np.add, _places(moves, ones))


@kernel("MaxPool")
def largest(call: Call, x: Array) -> Array:
    """The largest of each window; where it lies is left to the runtime."""
    if not is_float(x) or call.wants(1):
        raise Elsewhere
    moves = _moves(call, x)
    places = _places(moves, moves.padded(x, -np.inf))
    made = places[0].copy()
    for place in places[1:]:
        np.maximum(made, place, out=made)
    return made


@kernel("LpPool")
def norm(call: Call, x: Array) -> Array:
    """The norm of each window."""
    moves, p = _moves(call, x), call["p"]
    return sum(np.abs(place) ** p for place in _places(moves, moves.padded(x, 0.0))) ** (1 / p)


@kernel("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def whole(call: Call, x: Array) -> Array:
    """Over all of each channel."""
    axes, op = tuple(range(2, x.ndim)), call.node.op_type
    if op == "GlobalAveragePool":
        return np.mean(x, axis=axes, keepdims=True)
    if op == "GlobalMaxPool":
        return np.max(x, axis=axes, keepdims=True)
    return np.sum(np.abs(x) ** call["p"], axis=axes, keepdims=True) ** (1 / call["p"])


@kernel("MaxUnpool")
def unpool(call: Call, x: Array, indices: Array, sizes: Array | None = None) -> Array:
    """Each value where its index says, in the smaller output; a larger one takes that at its corner."""
    rank, kernel_sizes = x.ndim - 2, call["kernel_shape"]
    strides, pads = call["strides"] or [1] * rank, call["pads"] or [0] * (2 * rank)
    own = [(x.shape[2 + at] - 1) * strides[at] + kernel_sizes[at] - pads[at] - pads[rank + at] for at in range(rank)]
    made = np.zeros((*x.shape[:2], *own))
    made.reshape(-1)[indices.reshape(-1)] = x.reshape(-1)
    if sizes is None:
        return made
    full = np.zeros(tuple(sizes.tolist()))
    full[tuple(slice(0, n) for n in made.shape)] = made
    return full
