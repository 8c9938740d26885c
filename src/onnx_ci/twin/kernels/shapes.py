"""What moves values without changing them; views, wherever numpy can."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnx_ci.twin.registry import Call, Elsewhere, kernel
from onnx_ci.twin.values import Array


@kernel("Shape")
def shape(call: Call, x: Array) -> Array:
    """The sizes, or some of them."""
    return np.array(x.shape[slice(call["start"] or 0, call["end"])], np.int64)


@kernel("Size")
def size(call: Call, x: Array) -> Array:
    """How many elements."""
    return np.array(x.size, np.int64)


@kernel("Reshape")
def reshape(call: Call, x: Array, sizes: Array | None = None) -> Array:
    """A size of 0 is the input's own, unless zeros are allowed."""
    wanted = [int(n) for n in (call["shape"] if sizes is None else sizes)]
    if not call["allowzero"]:
        wanted = [x.shape[at] if n == 0 else n for at, n in enumerate(wanted)]
    if -1 in wanted and not x.size:
        rest = int(np.prod([n for n in wanted if n != -1], dtype=np.int64))
        wanted = [0 if n == -1 and rest else n for n in wanted]
    return x.reshape(wanted)


@kernel("Flatten")
def flatten(call: Call, x: Array) -> Array:
    """To two axes."""
    axis = call["axis"] + (x.ndim if call["axis"] < 0 else 0)
    return x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), int(np.prod(x.shape[axis:], dtype=np.int64)))


@kernel("Transpose")
def transpose(call: Call, x: Array) -> Array:
    """Axes in another order, reversed where none is given."""
    return np.transpose(x, call["perm"])


def _axes(call: Call, axes: Array | None) -> list[int] | None:
    given = call["axes"] if axes is None else axes.reshape(-1)
    return None if given is None else [int(axis) for axis in given]


@kernel("Squeeze")
def squeeze(call: Call, x: Array, axes: Array | None = None) -> Array:
    """Without some axes of size 1, or all."""
    given = _axes(call, axes)
    return np.squeeze(x, None if given is None else tuple(given))


@kernel("Unsqueeze")
def unsqueeze(call: Call, x: Array, axes: Array | None = None) -> Array:
    """With axes of size 1 more."""
    return np.expand_dims(x, tuple(_axes(call, axes) or ()))


@kernel("Concat")
def concat(call: Call, *inputs: Array) -> Array:
    """Joined along an axis."""
    return np.concatenate(inputs, axis=1 if call["axis"] is None else call["axis"])


@kernel("Split")
def split(call: Call, x: Array, sizes: Array | None = None) -> tuple[Any, ...]:
    """Pieces of the sizes given, else equal ones of which the last may be smaller."""
    axis, total = call["axis"] or 0, x.shape[call["axis"] or 0]
    given = call["split"] if sizes is None else sizes.tolist()
    if given is None:
        step = -(-total // len(call.node.output))
        given = [min(step, max(total - step * at, 0)) for at in range(len(call.node.output))]
    return tuple(np.split(x, np.cumsum(given)[:-1].astype(int).tolist(), axis=axis))


@kernel("Gather")
def gather(call: Call, x: Array, indices: Array) -> Array:
    """Slices of an axis by number."""
    return np.take(x, indices.astype(np.int64), axis=call["axis"])


@kernel("Slice")
def slices(
    call: Call,
    x: Array,
    starts: Array | None = None,
    ends: Array | None = None,
    axes: Array | None = None,
    steps: Array | None = None,
) -> Array:
    """Parts of axes; numpy clamps as ONNX does, but for an end that goes below zero backwards."""
    if starts is None:
        begins, stops, over = call["starts"], call["ends"], call["axes"]
    else:
        begins, stops, over = starts.tolist(), (ends if ends is not None else starts).tolist(), None
        over = None if axes is None else axes.tolist()
    strides = [1] * len(begins) if steps is None else steps.tolist()
    index: list[slice] = [slice(None)] * x.ndim
    for axis, begin, stop, step in zip(over or range(len(begins)), begins, stops, strides, strict=True):
        before = step < 0 and stop < -x.shape[axis]
        index[axis] = slice(begin, None if before else stop, step)
    return x[tuple(index)]


@kernel("Expand")
def expand(call: Call, x: Array, sizes: Array) -> Array:
    """Broadcast both ways."""
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(int(n) for n in sizes)))


@kernel("Tile")
def tile(call: Call, x: Array, repeats: Array) -> Array:
    """Repeated along each axis."""
    if call.version < 6:
        raise Elsewhere
    return np.tile(x, repeats.tolist())


@kernel("OneHot")
def one_hot(call: Call, indices: Array, depth: Array, values: Array) -> Array:
    """An axis more, with one value at the index and the other elsewhere; out of range it is nowhere."""
    count = int(np.asarray(depth).reshape(-1)[0])
    axis = call["axis"] + (indices.ndim + 1 if call["axis"] < 0 else 0)
    places = np.asarray(indices, np.int64)
    places = np.where((places < 0) & (places >= -count), places + count, places)
    hit = np.expand_dims(places, axis) == np.arange(count).reshape([-1] + [1] * (indices.ndim - axis))
    return np.where(hit, values[1], values[0])
