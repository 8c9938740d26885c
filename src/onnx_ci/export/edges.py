"""What the file's inputs and outputs are, held against the module: lost inputs, frozen values, wrong output sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir
import torch

from onnx_ci.artifact import tensors
from onnx_ci.export import arguments, arrays
from onnx_ci.export.agreement import differ
from onnx_ci.export.state import answer
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import DeclaredInput, Leaf
from onnx_ci.records.contract import TensorContract
from onnx_ci.records.expression import UNKNOWN
from onnx_ci.records.result import Finding, finding


def frozen_arguments(subject: Subject) -> dict[str, Any]:
    """Python values of the example call, which became constants of the file, as JSON or their repr."""
    plain = (bool, int, float, str, type(None))
    return {
        leaf.path: leaf.value if isinstance(leaf.value, plain) else repr(leaf.value)
        for leaf in subject.leaves
        if not leaf.is_tensor
    }


def lost_inputs(subject: Subject, graph: Graph) -> list[Finding]:
    """Inputs that the graph does not use, or that the older exporter dropped."""
    used = {
        graph.inputs[value.name].path
        for value in graph.model.graph.inputs
        if value.name and (value.uses() or value.is_graph_output())
    }
    found = []
    for leaf in subject.tensors:
        if leaf.path in used:
            continue
        matters = _matters(subject, leaf.path)
        effect = "though PyTorch's outputs depend on it" if matters else "and PyTorch's outputs do not change with it"
        gone = "is no input of the file" if leaf.path not in {i.path for i in graph.inputs.values()} else "is not used"
        found.append(
            finding(
                "contract.vanished-input", "fail" if matters else "warn", leaf.path,
                f"{leaf.path} {gone} in the exported graph, {effect}",
                hint="Its value was read as a Python number during the export: keep it a tensor throughout forward."
                if matters
                else "Leave it out of forward and of the cases, or keep it if the service sends it anyway.",
            )
        )  # fmt: skip
    return found


def lost_outputs(subject: Subject, graph: Graph) -> list[Finding]:
    """Values that forward returns and the file does not: Python numbers and texts."""
    kept = set(graph.outputs.values())
    found = []
    for at, value in enumerate(subject.eager.values):
        if at not in kept:
            name = subject.eager.keys[at] or f"outputs[{at}]"
            found.append(
                finding(
                    "contract.vanished-output", "warn", name,
                    f"forward also returns {name} = {value!r:.40}, which is no tensor and is not in the file",
                    hint="Return a tensor, if the service needs it.",
                )
            )  # fmt: skip
    return found


def other_dtypes(subject: Subject, graph: Graph) -> list[Finding]:
    """Inputs and outputs whose dtype in the file is another than PyTorch's for the example: int64 as int32, say."""
    pairs = [(value, graph.inputs[str(value.name)].value, "takes") for value in graph.model.graph.inputs]
    pairs += [
        (value, subject.eager.values[graph.outputs[str(value.name)]], "gives") for value in graph.model.graph.outputs
    ]
    found = []
    for value, given, does in pairs:
        before, after = tensors.dtype_name(arrays.to_value(given)), _dtype(value)
        if before == after or not after:
            continue
        origin = graph.source_map.values.get(str(value.name))
        found.append(
            finding(
                "contract.other-dtype", "fail", str(value.name),
                f"{value.name}: PyTorch {does} {before}, the file {does} {after}",
                hint="Look at the line that makes it, and at the translation of its operator: a value that does not "
                "fit the narrower type is cut without an error."
                if origin
                else "Export with an example of the dtype that production sends.",
                data={"torch": before, "file": after},
                file=origin.file if origin else None, line=origin.line if origin and origin.file else None,
            )
        )  # fmt: skip
    return found


def correct_output_sizes(graph: Graph, seen: Mapping[str, Sequence[Sequence[int]]]) -> tuple[Graph, list[Finding]]:
    """Puts the output sizes right that the exporter wrote otherwise than the capture or the cases know them.

    Those are numbers, and expressions of what is one number: of a window as wide as the example, how often it fits.
    """
    shapes = dict(graph.output_shapes)
    found = []
    for value in graph.model.graph.outputs:
        name = str(value.name)
        traced = shapes[name]
        if traced is None or value.shape is None or len(value.shape) != len(traced):
            continue
        written = [size if isinstance(size, int) else size.value for size in value.shape]
        cases = [shape for shape in seen.get(name, []) if len(shape) == len(traced)]
        best = [_best(graph, size, [shape[axis] for shape in cases]) for axis, size in enumerate(traced)]
        shapes[name] = best
        wrong = [axis for axis, wrote in enumerate(written) if _is_wrong(wrote, best[axis])]
        if wrong:
            known = [None if size == UNKNOWN else size for size in best]
            value.shape = ir.Shape([known[a] if a in wrong else written[a] for a in range(len(written))])
        if wrong and graph.reading.symbols:
            said = ", ".join(f"axis {axis} as {written[axis]} instead of {best[axis]}" for axis in wrong)
            found.append(
                finding(
                    "contract.output-dims", "warn", name,
                    f"the exporter wrote {said} for the output {name}; "
                    "its metadata was corrected",
                    hint="Nothing to do for the metadata; whether the graph itself holds at other sizes is for the "
                    "cases to tell.",
                )
            )  # fmt: skip
    return replace(graph, output_shapes=shapes), found


def _is_wrong(wrote: int | str | None, known: int | str) -> bool:
    return wrote != known and (isinstance(wrote, int) or (isinstance(wrote, str) and isinstance(known, int)))


def tensor_contracts(subject: Subject, graph: Graph) -> tuple[list[TensorContract], list[TensorContract]]:
    """The inputs and outputs of the contract, in the file's order."""
    declared = {item.path: item for item in subject.declared.inputs}
    inputs = []
    for value in graph.model.graph.inputs:
        leaf = graph.inputs[str(value.name)]
        item = declared.get(leaf.path)
        inputs.append(
            TensorContract(
                name=str(value.name),
                dtype=_dtype(value),
                shape=_axes(item, leaf, graph) if item else list(leaf.value.shape),
                source=leaf.path,
                low=item.low if item else None,
                high=item.high if item else None,
                values=item.values if item else None,
                nonfinite=list(item.nonfinite) if item else [],
            )
        )
    outputs = [
        TensorContract(
            name=str(value.name),
            dtype=_dtype(value),
            shape=graph.output_shapes[str(value.name)],
            source=_source(subject, graph.outputs[str(value.name)]),
        )
        for value in graph.model.graph.outputs
    ]
    return inputs, outputs


def _axes(item: DeclaredInput, leaf: Leaf, graph: Graph) -> list[int | str]:
    """The declared axes; one that was left to the exporter, and that it made static, is a number."""
    frozen = {name for name, seen in graph.reading.captured.items() if seen.least == seen.most}
    return [
        int(leaf.value.shape[at]) if at in item.auto and axis in frozen else axis for at, axis in enumerate(item.axes)
    ]


def _best(graph: Graph, traced: int | str, seen: Sequence[int]) -> int | str:
    """The size of an axis: what the capture says; of the older exporter's numbers, what the cases do not contradict."""
    if not graph.reading.symbols and not graph.reading.narrowed and any(size != traced for size in seen):
        return UNKNOWN
    return traced


def _matters(subject: Subject, path: str) -> bool:
    """Whether PyTorch's outputs change with an input; an error on the changed one says that they do."""

    def change(at: str, value: Any) -> Any:
        if at != path or not isinstance(value, torch.Tensor):
            return value
        if value.dtype == torch.bool:
            return ~value
        return value.flip(0) + 1 if value.dim() else value + 1

    inputs = arguments.rebuild(subject.example, change)
    given = answer(subject.module, arguments.bind(subject.module, inputs))
    return bool(given.error or differ(subject.eager, given))


def _dtype(value: ir.Value) -> str:
    if isinstance(value.type, ir.SequenceType):
        return f"sequence({_plain(value.type.dtype)})"
    return _plain(value.dtype)


def _plain(dtype: ir.DataType | None) -> str:
    if dtype is None:
        return ""
    return "string" if dtype == ir.DataType.STRING else str(dtype.numpy().name)


def _source(subject: Subject, at: int) -> str:
    key = subject.eager.keys[at]
    return key or (f"outputs[{at}]" if len(subject.eager.values) > 1 else "output")
