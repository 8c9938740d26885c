"""Resize and Upsample, axis by axis: each output place takes some input places, with weights.

Sizes come from the float32 product of size and scale, as ONNX Runtime computes them; coordinates from the scale as it
was meant (1.3, not its float32). Which place is the nearest is decided in float32, as the runtime and PyTorch do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onnx_ci.twin.attributes import meant
from onnx_ci.twin.registry import Call, kernel
from onnx_ci.twin.values import Array


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis to resize: its size, the new one, out over in, and the window of tf_crop_and_resize."""

    at: int
    size: int
    out: int
    scale: float
    start: float = 0.0
    end: float = 1.0


@kernel("Resize")
def resize(
    call: Call, x: Array, roi: Array | None = None, scales: Array | None = None, sizes: Array | None = None
) -> Array:
    """By scales or to sizes, over all axes or some."""
    if call.version < 11:
        return _resized(call, x, _by_scales(x, range(x.ndim), roi if roi is not None else np.ones(x.ndim), None))
    axes = [axis % x.ndim for axis in call["axes"] or range(x.ndim)]
    if scales is not None and scales.size:
        return _resized(call, x, _by_scales(x, axes, scales, roi))
    assert sizes is not None
    return _resized(call, x, _by_sizes(call, x, axes, sizes, roi))


@kernel("Upsample")
def upsample(call: Call, x: Array, scales: Array | None = None) -> Array:
    """The older name of Resize."""
    return _resized(call, x, _by_scales(x, range(x.ndim), call["scales"] if scales is None else scales, None))


def _window(roi: Array | None, at: int, count: int) -> tuple[float, float]:
    return (0.0, 1.0) if roi is None or not roi.size else (float(roi[at]), float(roi[count + at]))


def _by_scales(x: Array, axes: list[int] | range, scales: Array | list[float], roi: Array | None) -> list[Axis]:
    found = []
    for at, (axis, scale) in enumerate(zip(axes, scales, strict=True)):
        out = int(np.float32(x.shape[axis]) * np.float32(scale))
        found.append(Axis(axis, x.shape[axis], out, meant(float(scale)), *_window(roi, at, len(scales))))
    return found


def _by_sizes(call: Call, x: Array, axes: list[int], sizes: Array, roi: Array | None) -> list[Axis]:
    wanted = [int(n) for n in sizes]
    scales = [n / x.shape[axis] for axis, n in zip(axes, wanted, strict=True)]
    policy = call["keep_aspect_ratio_policy"] or "stretch"
    if policy != "stretch":
        one = min(scales) if policy == "not_larger" else max(scales)
        wanted = [math.floor(x.shape[axis] * one + 0.5) for axis in axes]
        scales = [one] * len(axes)
    each = enumerate(zip(axes, wanted, scales, strict=True))
    return [Axis(axis, x.shape[axis], n, s, *_window(roi, at, len(axes))) for at, (axis, n, s) in each]


def _resized(call: Call, x: Array, axes: list[Axis]) -> Array:
    crops = call["coordinate_transformation_mode"] == "tf_crop_and_resize"
    for axis in axes:
        if axis.size == axis.out and axis.scale == 1 and not crops:
            continue
        x = _along(x, axis.at, *_taps(call, axis))
    if not crops:
        return x
    for axis in axes:
        where = _coordinates("tf_crop_and_resize", axis, np.float64)
        outside = ((where < 0) | (where > axis.size - 1)).reshape([-1] + [1] * (x.ndim - 1 - axis.at))
        x = np.where(outside, call["extrapolation_value"], x)
    return x


def _along(x: Array, axis: int, places: Array, weights: Array | None) -> Array:
    """Sums of input places, (out, taps) of them, by their weights; one tap without weights is a choice."""
    if weights is None:
        return np.take(x, places[:, 0], axis=axis)
    shape = [-1] + [1] * (x.ndim - 1 - axis)
    made = np.take(x, places[:, 0], axis=axis) * weights[:, 0].reshape(shape)
    for tap in range(1, places.shape[1]):
        made += np.take(x, places[:, tap], axis=axis) * weights[:, tap].reshape(shape)
    return made


def _taps(call: Call, axis: Axis) -> tuple[Array, Array | None]:
    """The input places of each output place, and their weights."""
    kind, mode = call["mode"], call["coordinate_transformation_mode"] or "asymmetric"
    if kind == "nearest":
        chosen = _nearest(call["nearest_mode"] or "simple", _coordinates(mode, axis, np.float32), axis.scale)
        return np.clip(chosen, 0, axis.size - 1)[:, None], None
    where = _coordinates(mode, axis, np.float64)
    if kind == "linear" and not call["antialias"]:
        where = np.clip(where, 0, axis.size - 1)
    shrink = min(axis.scale, 1.0) if call["antialias"] else 1.0
    reach = math.ceil((1 if kind == "linear" else 2) / shrink)
    places = np.floor(where).astype(np.int64)[:, None] + np.arange(1 - reach, reach + 1)
    distance = np.abs(where[:, None] - places) * shrink
    a = call["cubic_coeff_a"] or -0.75
    weights = np.maximum(1 - distance, 0) if kind == "linear" else _cubic(distance, a)
    if call["exclude_outside"]:
        weights = np.where((places >= 0) & (places < axis.size), weights, 0.0)
    if call["exclude_outside"] or call["antialias"]:
        weights = weights / np.sum(weights, axis=1, keepdims=True)
    return np.clip(places, 0, axis.size - 1), weights


def _cubic(t: Array, a: float) -> Array:
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


def _nearest(mode: str, where: Array, scale: float) -> Array:
    """How a half, or anything between two places, is settled."""
    half = where.dtype.type(0.5)
    if mode == "simple":  # opset 10
        mode = "ceil" if scale < 1 else "floor"
    if mode.startswith("round"):
        rounded = np.ceil(where - half) if mode == "round_prefer_floor" else np.floor(where + half)
    else:
        rounded = np.ceil(where) if mode == "ceil" else np.floor(where)
    return rounded.astype(np.int64)


def _coordinates(mode: str, axis: Axis, dtype: type[np.floating]) -> Array:
    """Where each output place lies among the input places."""
    x = np.arange(axis.out).astype(dtype)
    n, out, scale, half = dtype(axis.size), dtype(axis.out), dtype(axis.scale), dtype(0.5)
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and axis.out > 1):
        return (x + half) / scale - half
    if mode == "pytorch_half_pixel":
        return np.zeros_like(x)
    if mode == "half_pixel_symmetric":
        center = n / 2
        return center * (1 - out / (scale * n)) + (x + half) / scale - half
    if mode == "align_corners":
        return x * (n - 1) / (out - 1) if axis.out > 1 else np.zeros_like(x)
    if mode == "tf_crop_and_resize":
        start, end = dtype(axis.start), dtype(axis.end)
        if axis.out > 1:
            return start * (n - 1) + x * (end - start) * (n - 1) / (out - 1)
        return np.full_like(x, half * (start + end) * (n - 1))
    return x / scale
