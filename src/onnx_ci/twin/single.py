"""A model of one node, for the paths that run whole models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from onnx_ci.twin.values import Value


def one_node(node: onnx.NodeProto, version: int, inputs: Sequence[Value]) -> onnx.ModelProto:
    """The model of a node with inputs of these types and any rank; its names are `i0`, … and `o0`, …"""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.name = ""
    del copy.input[:], copy.output[:]
    copy.input.extend(f"i{at}" if value is not None else "" for at, value in enumerate(inputs))
    copy.output.extend(f"o{at}" if name else "" for at, name in enumerate(node.output))
    given = [helper.make_value_info(f"i{at}", _type(value)) for at, value in enumerate(inputs) if value is not None]
    made = [onnx.ValueInfoProto(name=name) for name in copy.output if name]
    opset = helper.make_opsetid("", version)
    return helper.make_model(
        helper.make_graph([copy], "node", given, made),
        opset_imports=[opset],
        ir_version=helper.find_min_ir_version_for([opset], ignore_unknown=True),
    )


def signature(inputs: Sequence[Value]) -> tuple[str, ...]:
    """The dtypes of inputs, as a key."""
    return tuple(_word(value) for value in inputs)


def _word(value: Value) -> str:
    if isinstance(value, list):
        return f"sequence({_word(value[0]) if value else ''})"
    return "" if value is None else value.dtype.name


def _type(value: Value) -> onnx.TypeProto:
    if isinstance(value, list):
        return helper.make_sequence_type_proto(_type(value[0] if value else np.zeros(0)))
    assert value is not None
    element = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_type_proto(element, None)
