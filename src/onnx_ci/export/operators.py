"""Operators that have no place in a file for inference: random ones, and those that behave as in training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from onnx_ci.export import program
from onnx_ci.records.result import Finding, finding
from onnx_ci.records.source_map import Origin

_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}


def findings(model: ir.Model, origins: Mapping[str, Origin]) -> list[Finding]:
    """One finding a kind of operator, at the first node's line."""
    random: dict[str, list[ir.Node]] = {}
    training: dict[str, list[ir.Node]] = {}
    for node in program.nodes(model):
        if node.op_type in _RANDOM:
            random.setdefault(node.op_type, []).append(node)
        elif _trains(node):
            training.setdefault(node.op_type, []).append(node)
    found = []
    for op, nodes in random.items():
        found.append(
            finding(
                "export.random-operator", "fail", op,
                f"the file draws random numbers ({op}, {_counted(nodes)}): no two runs of it agree, and torch's seed "
                f"does not reach the runtime",
                hint="Give the noise to forward as an input, or leave the sampling out of what is exported.",
                **_line(nodes[0], origins),
            )
        )  # fmt: skip
    for op, nodes in training.items():
        found.append(
            finding(
                "export.training-operator", "fail", op,
                f"the file holds {op} in training mode ({_counted(nodes)})",
                hint="Call .eval() on the module before the export.", **_line(nodes[0], origins),
            )
        )  # fmt: skip
    return found


def _trains(node: ir.Node) -> bool:
    if node.op_type == "BatchNormalization":
        mode = node.attributes.get("training_mode")
        return mode is not None and bool(mode.value)
    if node.op_type != "Dropout" or len(node.inputs) < 3:
        return False
    switch = node.inputs[2]
    constant = ir.convenience.get_const_tensor(switch) if switch is not None else None
    return constant is not None and bool(constant.numpy().any())


def _counted(nodes: list[ir.Node]) -> str:
    return "one node" if len(nodes) == 1 else f"{len(nodes)} nodes"


def _line(node: ir.Node, origins: Mapping[str, Origin]) -> dict[str, Any]:
    origin = origins.get(str(node.outputs[0].name))
    return {"file": origin.file, "line": origin.line} if origin else {}
