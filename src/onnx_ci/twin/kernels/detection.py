"""What detectors add: suppression of overlapping boxes, and pooling over regions."""

from __future__ import annotations

import math

import numpy as np

from onnx_ci.twin.registry import Call, kernel
from onnx_ci.twin.values import Array


@kernel("NonMaxSuppression")
def suppress(
    call: Call,
    boxes: Array,
    scores: Array,
    most: Array | None = None,
    overlap: Array | None = None,
    least: Array | None = None,
) -> Array:
    """(batch, class, box) of what is kept, by falling score; equal scores in the boxes' order."""
    limit = 0 if most is None else int(most.reshape(-1)[0])
    ratio = 0.0 if overlap is None else float(overlap.reshape(-1)[0])
    kept: list[tuple[int, int, int]] = []
    corners = _corners(boxes, bool(call["center_point_box"]))
    for batch, group in np.ndindex(*scores.shape[:2]):
        row = scores[batch, group]
        order = np.argsort(-row, kind="stable")
        if least is not None:
            order = order[row[order] > float(least.reshape(-1)[0])]
        kept += [(batch, group, at) for at in _kept(corners[batch], order.tolist(), ratio, limit)]
    return np.array(kept, np.int64).reshape(-1, 3)


def _kept(corners: Array, order: list[int], ratio: float, limit: int) -> list[int]:
    found: list[int] = []
    for at in order:
        if len(found) >= limit:
            break
        if not found or not bool((_overlap(corners[found], corners[at]) > ratio).any()):
            found.append(at)
    return found


def _corners(boxes: Array, centered: bool) -> Array:
    """(…, 4) as low and high corners, whichever way they were given."""
    if centered:
        x, y, w, h = np.moveaxis(boxes, -1, 0)
        return np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], axis=-1)
    a, b = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(a, b), np.maximum(a, b)], axis=-1)


def _overlap(boxes: Array, box: Array) -> Array:
    """Shared area over the area of both."""
    low, high = np.maximum(boxes[:, :2], box[:2]), np.minimum(boxes[:, 2:], box[2:])
    shared = np.prod(np.maximum(high - low, 0), axis=-1)
    total = np.prod(boxes[:, 2:] - boxes[:, :2], axis=-1) + np.prod(box[2:] - box[:2]) - shared
    return np.where(total > 0, shared / np.where(total > 0, total, 1), 0.0)


@kernel("RoiAlign")
def roi_align(call: Call, x: Array, rois: Array, batches: Array) -> Array:
    """The mean, or the largest, of samples between pixels, a grid of them in each cell of a region."""
    rows, columns, scale = call["output_height"], call["output_width"], call["spatial_scale"]
    half = call["coordinate_transformation_mode"] == "half_pixel"
    made = np.zeros((len(rois), x.shape[1], rows, columns))
    for at, (roi, batch) in enumerate(zip(rois * scale - (0.5 if half else 0.0), batches, strict=True)):
        left, top, right, bottom = roi
        height, width = bottom - top, right - left
        if not half:
            height, width = max(height, 1.0), max(width, 1.0)
        down = call["sampling_ratio"] or math.ceil(height / rows)
        across = call["sampling_ratio"] or math.ceil(width / columns)
        ys = top + (np.arange(rows * down) + 0.5) * height / (rows * down)
        xs = left + (np.arange(columns * across) + 0.5) * width / (columns * across)
        made[at] = _pooled(call, x[batch], ys, xs, (rows, down, columns, across))
    return made


def _pooled(call: Call, image: Array, ys: Array, xs: Array, grid: tuple[int, int, int, int]) -> Array:
    """Samples at a grid, pooled by cell; the largest is taken over the four weighed corners, as the runtime does."""
    rows, down, columns, across = grid
    y0, y1, fy, in_y = _between(ys, image.shape[1])
    x0, x1, fx, in_x = _between(xs, image.shape[2])
    corners = [
        image[:, a][:, :, b] * (wa[:, None] * wb * (in_y[:, None] & in_x))
        for a, wa in ((y0, 1 - fy), (y1, fy))
        for b, wb in ((x0, 1 - fx), (x1, fx))
    ]
    cells = (image.shape[0], rows, down, columns, across)
    if call["mode"] == "max":
        return np.maximum.reduce(corners).reshape(cells).max(axis=(2, 4))
    return sum(corners).reshape(cells).mean(axis=(2, 4))


def _between(places: Array, size: int) -> tuple[Array, Array, Array, Array]:
    """The places on both sides, the share of the second, and whether it counts at all."""
    counts = (places >= -1) & (places <= size)
    inside = np.clip(places, 0, size - 1)
    low = np.floor(inside).astype(np.int64)
    return low, np.minimum(low + 1, size - 1), inside - low, counts
