"""Which nodes of a graph only compute shapes: they belong on the CPU on any provider, and are no fallback.

A node is shape arithmetic when all it reads comes from the shapes of tensors, from constants and from integer scalars,
and what it gives is integers, booleans, or a handful of floats (the scales of a resize).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx

from onnx_ci.artifact import graph
from onnx_ci.artifact.graph import ValueType

_FROM_SHAPES = {"Shape", "Size"}
_FEW = 16
_EXACT = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}


def shape_arithmetic(model: onnx.ModelProto) -> set[str]:
    """Names of the nodes that are shape arithmetic; nodes without a name can't be among them."""
    types = graph.value_types(model)
    scalars = {
        item.name for item in model.graph.input if _is_exact(types.get(item.name)) and _count(types.get(item.name)) == 1
    }
    found: set[str] = set()
    _walk(model.graph, types, {"", *scalars}, found)
    return found


def _walk(part: onnx.GraphProto, types: Mapping[str, ValueType], outer: Iterable[str], found: set[str]) -> None:
    known = {*outer, *(item.name for item in part.initializer)}
    for node in part.node:
        inner = list(graph.subgraphs(node))
        for body in inner:
            _walk(body, types, known, found)
        derived = node.op_type in _FROM_SHAPES or (not inner and all(name in known for name in node.input))
        constant = node.op_type == "Constant" and node.domain in ("", "ai.onnx")
        if constant or (derived and all(_is_small(types.get(name)) for name in node.output if name)):
            known.update(node.output)
            if node.name:
                found.add(node.name)


def _is_small(kind: ValueType | None) -> bool:
    count = _count(kind)
    return _is_exact(kind) or (count is not None and count <= _FEW)


def _is_exact(kind: ValueType | None) -> bool:
    return kind is not None and kind.dtype in _EXACT


def _count(kind: ValueType | None) -> int | None:
    """How many elements a value has; None where a size is not known."""
    if kind is None or kind.shape is None:
        return None
    count = 1
    for size in kind.shape:
        if size is None:
            return None
        count *= size
    return count
