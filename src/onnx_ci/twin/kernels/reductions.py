"""Reductions: axes by attribute or by input, over nothing too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onnx_ci.twin.registry import Call, Elsewhere, kernel
from onnx_ci.twin.values import Array, is_float

Axes = tuple[int, ...] | None


def _total(x: Array, axes: Axes) -> Array:
    return np.sum(x, axis=axes, keepdims=True, dtype=x.dtype)


def _log_sum_exp(x: Array, axes: Axes) -> Array:
    top = _largest(x, axes)
    top = np.where(np.isfinite(top), top, 0.0)
    return np.log(_total(np.exp(x - top), axes)) + top


def _largest(x: Array, axes: Axes) -> Array:
    return np.max(x, axis=axes, keepdims=True, initial=_bounds(x)[0])


def _smallest(x: Array, axes: Axes) -> Array:
    return np.min(x, axis=axes, keepdims=True, initial=_bounds(x)[1])


def _bounds(x: Array) -> tuple[Any, Any]:
    """What the largest and the smallest of nothing are."""
    if x.dtype.kind == "b":
        return False, True
    if is_float(x):
        return -np.inf, np.inf
    return np.iinfo(x.dtype).min, np.iinfo(x.dtype).max


def _product(x: Array, axes: Axes) -> Array:
    return np.prod(x, axis=axes, keepdims=True, dtype=x.dtype)


def _mean(x: Array, axes: Axes) -> Array:
    if not is_float(x):
        raise Elsewhere
    return np.mean(x, axis=axes, keepdims=True)


def _root(x: Array, axes: Axes) -> Array:
    return np.asarray(np.sqrt(_total(x * x, axes)), x.dtype)


_REDUCE: dict[str, Callable[[Array, Axes], Array]] = {
    "ReduceL1": lambda x, axes: _total(np.abs(x), axes),
    "ReduceL2": _root,
    "ReduceLogSum": lambda x, axes: np.log(_total(x, axes)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _largest,
    "ReduceMean": _mean,
    "ReduceMin": _smallest,
    "ReduceProd": _product,
    "ReduceSum": _total,
    "ReduceSumSquare": lambda x, axes: _total(x * x, axes),
}


@kernel(*_REDUCE)
def reduce(call: Call, x: Array, axes: Array | None = None) -> Array:
    """One of the ten, over some axes or all."""
    given = [int(axis) for axis in (call["axes"] or [])] if axes is None else [int(axis) for axis in axes.reshape(-1)]
    if not given and call["noop_with_empty_axes"]:
        return _REDUCE[call.node.op_type](x[None], (0,))[0]
    over = tuple(axis % x.ndim for axis in given) or tuple(range(x.ndim))
    made = _REDUCE[call.node.op_type](x, over)
    return made if call["keepdims"] != 0 else made.reshape([n for at, n in enumerate(x.shape) if at not in over])
