"""A tool that rewrites norms has an epsilon of its own: ten times the module's."""

from pathlib import Path

import onnx

from onnx_ci.artifact import layout


def tamper(artifact: Path) -> None:
    model = onnx.load(str(artifact / "model.onnx"))
    (norm,) = [node for node in model.graph.node if node.op_type == "LayerNormalization"]
    (epsilon,) = [one for one in norm.attribute if one.name == "epsilon"]
    epsilon.f *= 10
    onnx.save(model, str(artifact / "model.onnx"))
    layout.write_manifest(artifact)
