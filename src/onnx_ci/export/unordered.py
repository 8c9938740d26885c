"""Which outputs are in the order of a TopK with ``sorted=0``, which nobody promises: tried out, by turning it round.

The twin runs the file once more with what such a TopK selects in reverse. An output that stays the same does not hang
on the order; one that is now reversed along an axis has it there.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from onnx_ci.artifact import layout, tensors
from onnx_ci.numerics import function
from onnx_ci.numerics.dtypes import Array
from onnx_ci.records.cases import Case, OpenOrder
from onnx_ci.records.result import Finding, finding
from onnx_ci.twin import Twin, TwinRun, Unoracled
from onnx_ci.twin.values import Value

_RULE = "contract.open-order"
_SAME = 1e-9
_MOST = 16


def judge(cases: Sequence[Case], folder: Path) -> tuple[list[Case], list[Finding]]:
    """The cases with what is known of the order of their outputs, and a warning where it is open."""
    model = onnx.load(str(folder / layout.MODEL), load_external_data=False)
    loose = [node for node in model.graph.node if _is_loose(node)][:_MOST]
    if not loose:
        return list(cases), []
    found: dict[str, OpenOrder] = {}
    try:
        twin = Twin(model, folder)
        for case in function.chosen(cases):
            values = tensors.read_values(folder / f"test_data_set_{case.index}", "input")
            feeds = {name: value for name, value in values.items() if not isinstance(value, dict)}
            plain = twin.run(feeds, keep=[_selected(node) for node in loose])
            for node in loose:
                found = {**_orders(model, node, folder, feeds, plain), **found}
    except Unoracled as error:
        message = f"whether outputs hang on the order of a TopK with sorted=0 is not known, since {error}"
        return list(cases), [finding(_RULE, "skip", "", message)]
    if not found:
        return list(cases), [finding(_RULE, "pass", "", "no output hangs on the order that a TopK leaves open")]
    noted = [replace(case, outputs=[replace(one, order=found.get(one.name)) for one in case.outputs]) for case in cases]
    return noted, [_told(found)]


def _told(found: Mapping[str, OpenOrder]) -> Finding:
    names = list(found)
    listed = ", ".join(f"{name} along axis {one.axis}" for name, one in found.items())
    message = f"no order is promised for {listed}: it is that of a TopK with sorted=0, for which PyTorch and each "
    message += "provider choose their own; parity compares what is selected, in any order"
    hint = "Call topk with sorted=True if whoever reads it takes the first for the best."
    return finding(_RULE, "warn", names[0], message, hint=hint, data={"outputs": names})


def _is_loose(node: onnx.NodeProto) -> bool:
    given = {one.name: one for one in node.attribute}
    return node.op_type == "TopK" and node.domain in ("", "ai.onnx") and "sorted" in given and not given["sorted"].i


def _selected(node: onnx.NodeProto) -> str:
    return str(node.output[0] or node.output[1])


def _orders(
    model: onnx.ModelProto, node: onnx.NodeProto, folder: Path, feeds: Mapping[str, Value], plain: TwinRun
) -> dict[str, OpenOrder]:
    """By name the outputs of the model that are in the order of this TopK; `plain` is what the file gives as it is.

    Raises:
        Unoracled: The file has no path in float64.
    """
    values = _selected(node)
    selected = (plain.kept | plain.outputs).get(values)
    if not isinstance(selected, np.ndarray):
        return {}
    axis = next((one.i for one in node.attribute if one.name == "axis"), -1) % selected.ndim
    turned = Twin(_turned(model, node, axis), folder).run(feeds).outputs
    found = {}
    for name, value in plain.outputs.items():
        other = turned[name]
        if isinstance(value, np.ndarray) and isinstance(other, np.ndarray) and value.shape == other.shape:
            at = _reversed(value, other, selected.shape[axis])
            rows = selected.shape[:axis] + selected.shape[axis + 1 :]
            if at is not None:
                found[name] = OpenOrder(node=values, axis=at, rows=_rows(value.shape, at, rows))
    return found


def _turned(model: onnx.ModelProto, node: onnx.NodeProto, axis: int) -> onnx.ModelProto:
    """The model with what the node selects in reverse."""
    made = copy.deepcopy(model)
    at = next(at for at, one in enumerate(made.graph.node) if one == node)
    bounds = {"starts": -1, "ends": np.iinfo(np.int64).min, "axes": axis, "steps": -1}
    before = f"{node.output[0]}{node.output[1]}_turned"
    constants = [
        helper.make_node("Constant", [], [f"{before}_{key}"], value_ints=[int(value)]) for key, value in bounds.items()
    ]
    slices = []
    for which, name in enumerate(made.graph.node[at].output):
        if name:
            made.graph.node[at].output[which] = f"{before}_{which}"
            slices.append(
                helper.make_node("Slice", [f"{before}_{which}", *(f"{before}_{key}" for key in bounds)], [name])
            )
    for one in reversed([*constants, *slices]):
        made.graph.node.insert(at + 1, one)
    return made


def _reversed(value: Array, other: Array, count: int) -> int | None:
    """The axis along which one is the other reversed; None where they are the same, or differ in another way."""
    if _same(value, other):
        return None
    axes = [axis for axis, size in enumerate(value.shape) if size == count]
    return next((axis for axis in axes if _same(np.flip(value, axis), other)), None)


def _same(value: Array, other: Array) -> bool:
    if value.dtype.kind not in "fc":
        return bool(np.array_equal(value, other))
    sure = value[np.isfinite(value)]
    most = float(np.abs(sure).max()) if sure.size else 1.0
    return bool(np.allclose(value, other, rtol=_SAME, atol=_SAME * most, equal_nan=True))


def _rows(shape: Sequence[int], axis: int, rows: Sequence[int]) -> list[int]:
    """The axes of an output, without the one of the selected, that are the rows of the TopK.

    They come first in what is gathered; where they are not there, each place stands for a row.
    """
    rest = [at for at in range(len(shape)) if at != axis]
    for wanted in (list(rows), [size for size in rows if size != 1]):
        if [shape[at] for at in rest[: len(wanted)]] == wanted:
            return rest[: len(wanted)]
    return rest
