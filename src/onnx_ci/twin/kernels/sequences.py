"""Sequences are lists, an empty optional is None."""

from __future__ import annotations

import numpy as np

from onnx_ci.twin.registry import Call, kernel
from onnx_ci.twin.values import Array, Value

Sequence = list[Value]


@kernel("SequenceEmpty")
def empty(call: Call) -> Sequence:
    """No items."""
    return []


@kernel("SequenceConstruct")
def construct(call: Call, *items: Value) -> Sequence:
    """The inputs as items."""
    return list(items)


@kernel("SequenceAt")
def at(call: Call, sequence: Sequence, position: Array) -> Value:
    """One item; negative positions count from the end."""
    return sequence[int(np.asarray(position).reshape(-1)[0])]


@kernel("SequenceInsert")
def insert(call: Call, sequence: Sequence, item: Value, position: Array | None = None) -> Sequence:
    """One item more, at the end where no position is given."""
    where = len(sequence) if position is None else int(np.asarray(position).reshape(-1)[0])
    where += len(sequence) if where < 0 else 0
    return [*sequence[:where], item, *sequence[where:]]


@kernel("SequenceErase")
def erase(call: Call, sequence: Sequence, position: Array | None = None) -> Sequence:
    """One item less, the last where no position is given."""
    where = len(sequence) - 1 if position is None else int(np.asarray(position).reshape(-1)[0])
    where += len(sequence) if where < 0 else 0
    return [*sequence[:where], *sequence[where + 1 :]]


@kernel("SequenceLength")
def length(call: Call, sequence: Sequence) -> Array:
    """How many items."""
    return np.array(len(sequence), np.int64)


@kernel("ConcatFromSequence")
def concat(call: Call, sequence: list[Array]) -> Array:
    """The items joined along an axis, or along a new one."""
    join = np.stack if call["new_axis"] else np.concatenate
    return join(sequence, axis=call["axis"])


@kernel("SplitToSequence")
def split(call: Call, x: Array, sizes: Array | None = None) -> Sequence:
    """Pieces along an axis: of the sizes given, of one size (the last may be smaller), or of 1."""
    axis = call["axis"]
    total = x.shape[axis]
    if sizes is None or sizes.ndim == 0:
        step = 1 if sizes is None else int(sizes)
        cuts = list(range(step, total, step))
    else:
        cuts = np.cumsum(sizes)[:-1].tolist()
    pieces = np.split(x, cuts, axis=axis)
    drop = sizes is None and call["keepdims"] == 0
    return [np.squeeze(piece, axis) if drop else piece for piece in pieces]


@kernel("Optional")
def optional(call: Call, value: Value = None) -> Value:
    """The value, or nothing."""
    return value


@kernel("OptionalHasElement")
def has_element(call: Call, value: Value = None) -> Array:
    """Whether there is a value."""
    return np.array(value is not None)


@kernel("OptionalGetElement")
def get_element(call: Call, value: Value) -> Value:
    """The value, which must be there."""
    if value is None:
        raise ValueError("the optional is empty")
    return value
