"""If, Loop, Scan and SequenceMap: their graphs run in the twin too, and see the values around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnx_ci.twin.kernels.constants import dtype_of
from onnx_ci.twin.registry import Call, Unoracled, kernel
from onnx_ci.twin.values import Array, Value


@kernel("If")
def branch(call: Call, condition: Array) -> tuple[Value, ...]:
    """One of the two graphs."""
    taken = "then_branch" if bool(np.asarray(condition).reshape(-1)[0]) else "else_branch"
    return tuple(call.run(taken, []))


@kernel("Loop")
def loop(call: Call, trips: Array | None, condition: Array | None, *state: Value) -> tuple[Value, ...]:
    """Runs its body until the condition falls or the trips are used up; what it scans out is stacked."""
    carried = list(state)
    limit = None if trips is None else int(np.asarray(trips).reshape(-1)[0])
    going = condition is None or bool(np.asarray(condition).reshape(-1)[0])
    rows: list[list[Value]] = []
    count = 0
    while going and (limit is None or count < limit):
        made = call.run("body", [np.array(count, np.int64), np.array(going), *carried])
        going = bool(np.asarray(made[0]).reshape(-1)[0])
        carried = made[1 : 1 + len(carried)]
        rows.append(made[1 + len(carried) :])
        count += 1
    scans = len(call.node.output) - len(carried)
    return (*carried, *_stacked(call, rows, scans))


def _stacked(call: Call, rows: list[list[Value]], scans: int) -> list[Value]:
    if scans and not rows:
        return [_empty(call, len(call.node.output) - scans + at) for at in range(scans)]
    return [np.stack([np.asarray(row[at]) for row in rows]) for at in range(scans)]


def _empty(call: Call, at: int) -> Array:
    """A scan output of no trip: its dtype and the sizes of a row, as far as the body's types say."""
    body = next(item.g for item in call.node.attribute if item.name == "body")
    kind = body.output[1 + at].type.tensor_type
    sizes = [size.dim_value for size in kind.shape.dim]
    return np.zeros((0, *sizes), dtype_of(kind.elem_type))


@kernel("Scan")
def scan(call: Call, *inputs: Any) -> tuple[Value, ...]:
    """Runs its body over slices of its inputs."""
    if call.version < 9:
        raise Unoracled("Scan", "opset 8")
    count = call["num_scan_inputs"]
    states, scanned = len(inputs) - count, inputs[len(inputs) - count :]
    outs = len(call.node.output) - states
    in_axes = call["scan_input_axes"] or [0] * count
    out_axes = call["scan_output_axes"] or [0] * outs
    in_back = call["scan_input_directions"] or [0] * count
    out_back = call["scan_output_directions"] or [0] * outs
    slices = [_slices(x, axis, back) for x, axis, back in zip(scanned, in_axes, in_back, strict=True)]
    carried: list[Value] = list(inputs[:states])
    rows: list[list[Value]] = []
    for at in range(len(slices[0])):
        made = call.run("body", [*carried, *(item[at] for item in slices)])
        carried = made[:states]
        rows.append(made[states:])
    if not rows:
        raise Unoracled("Scan", "a sequence of length 0")
    gathered = []
    for at, (axis, back) in enumerate(zip(out_axes, out_back, strict=True)):
        column = [np.asarray(row[at]) for row in rows]
        gathered.append(np.stack(column[::-1] if back else column, axis=axis))
    return (*carried, *gathered)


def _slices(x: Array, axis: int, back: int) -> Array:
    moved = np.moveaxis(x, axis, 0)
    return moved[::-1] if back else moved


@kernel("SequenceMap")
def sequence_map(call: Call, sequence: list[Value], *others: Value) -> tuple[Value, ...]:
    """Runs its body on each item; other sequences go along item by item, tensors as they are."""
    rows = [
        call.run("body", [item, *(other[at] if isinstance(other, list) else other for other in others)])
        for at, item in enumerate(sequence)
    ]
    return tuple([row[at] for row in rows] for at in range(len(call.node.output)))
