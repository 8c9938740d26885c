"""Whether a file computes in narrower floats than its module does: rule contract.precision.

A value that goes through float16 on its way loses digits that a float32 tolerance often does not miss.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import AttributeProto, NodeProto, TensorProto

from onnx_ci.artifact import graph
from onnx_ci.records.contract import Contract
from onnx_ci.records.result import Finding, finding
from onnx_ci.records.source_map import SourceMap

_RULE = "contract.precision"
_SHOWN = 5
_TYPES = ("to", "dtype", "output_dtype", "stash_type", "softmax_precision")
"""Attributes that hold an element type."""


def judge(model: onnx.ModelProto, contract: Contract, origins: SourceMap) -> Finding:
    """Compares the floats narrower than float32 in the file with those of the captured program."""
    if contract.halves is None:
        return finding(_RULE, "skip", "", "not judged, since no program was captured that tells the module's dtypes")
    strays: dict[str, tuple[str, NodeProto | None]] = {}
    for place, dtype, node in _halves(model):
        if dtype not in contract.halves:
            strays.setdefault(place, (dtype, node))
    if not strays:
        told = f" but {', '.join(contract.halves)}, as the module does" if contract.halves else ""
        return finding(_RULE, "pass", "", f"the file computes in no float narrower than float32{told}")
    place, (dtype, node) = next(iter(strays.items()))
    origin = graph.origin_of(node.name, origins) if node is not None else None
    more = f", and {len(strays) - 1} other places too" if len(strays) > 1 else ""
    return finding(
        _RULE,
        "fail",
        place,
        f"{place} is {dtype} in the file, while the module computes with no {dtype}{more}",
        hint="Export again without the tool or the translation that casts; or compute in that dtype in forward too.",
        data={"places": list(strays)[:_SHOWN], "count": len(strays)},
        **({"file": origin.file, "line": origin.line} if origin and origin.file else {}),
    )


def _halves(model: onnx.ModelProto) -> Iterator[tuple[str, str, NodeProto | None]]:
    """Where the file names such a dtype, which, and the node."""
    for node in graph.all_nodes(model):
        for attribute in node.attribute:
            for elem_type in _types_in(attribute):
                if _is_half(elem_type):
                    yield f"node {node.name or node.op_type}", graph.dtype_name(elem_type), node
    for inner in [model.graph, *(part for node in graph.all_nodes(model) for part in graph.subgraphs(node))]:
        for tensor in inner.initializer:
            if _is_half(tensor.data_type):
                yield f"weight {tensor.name}", graph.dtype_name(tensor.data_type), None
        for value in [*inner.input, *inner.value_info, *inner.output]:
            if _is_half(value.type.tensor_type.elem_type):
                yield f"value {value.name}", graph.dtype_name(value.type.tensor_type.elem_type), None


def _types_in(attribute: AttributeProto) -> list[int]:
    if attribute.type == AttributeProto.TENSOR:
        return [attribute.t.data_type]
    return [attribute.i] if attribute.type == AttributeProto.INT and attribute.name in _TYPES else []


def _is_half(elem_type: int) -> bool:
    return elem_type in (TensorProto.FLOAT16, TensorProto.BFLOAT16) or graph.dtype_name(elem_type).startswith("float8")
