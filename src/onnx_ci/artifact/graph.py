"""Reads of a model file that several checks share: all its nodes, the types of its values, their source lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx

from onnx_ci.records.source_map import Origin, SourceMap


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Every node of a graph and of the graphs inside it."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from nodes_of(inner)


def all_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Every node of a model: of its graph, of subgraphs and of its functions."""
    yield from nodes_of(model.graph)
    for function in model.functions:
        for node in function.node:
            yield node
            for inner in subgraphs(node):
                yield from nodes_of(inner)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs among a node's attributes: branches and loop bodies."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def dtype_name(elem_type: int) -> str:
    """The name in numpy of an ONNX element type, or "bfloat16", "string", "undefined"."""
    if elem_type == onnx.TensorProto.STRING:
        return "string"
    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(elem_type).name)
    except KeyError:
        return "undefined"


@dataclass(frozen=True, slots=True)
class ValueType:
    """What is known of a value: its dtype and sizes, where None stands for a size, or a rank, not known."""

    dtype: str
    shape: tuple[int | None, ...] | None


def value_types(model: onnx.ModelProto) -> dict[str, ValueType]:
    """Types of all values that inference finds; empty where it fails, since nothing may be judged by its failing."""
    try:
        graph = onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=False).graph
    except Exception:  # it raises many kinds; a model larger than protobuf takes is one
        graph = model.graph
    found = {item.name: ValueType(dtype_name(item.data_type), tuple(item.dims)) for item in graph.initializer}
    for item in [*graph.input, *graph.value_info, *graph.output]:
        if item.type.HasField("tensor_type"):
            tensor = item.type.tensor_type
            shape = None
            if tensor.HasField("shape"):
                shape = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim)
            found[item.name] = ValueType(dtype_name(tensor.elem_type), shape)
    return found


def origin_of(node_name: str, source_map: SourceMap) -> Origin | None:
    """Where a node came from, by its name."""
    if not node_name:
        return None
    return next((origin for origin in source_map.values.values() if origin.node == node_name), None)


def first_of(operator: str, model: onnx.ModelProto) -> str:
    """The name of the first node of an operator as ONNX Runtime writes it, "my.ops:Foo(1)"; empty where none is."""
    domain, _, name = operator.partition("(")[0].rpartition(":")
    return next((node.name for node in all_nodes(model) if (node.domain, node.op_type) == (domain, name)), "")


def origins_by_node(source_map: SourceMap) -> Mapping[str, Origin]:
    """Origins by the name of the node."""
    return {origin.node: origin for origin in source_map.values.values() if origin.node}
