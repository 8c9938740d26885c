"""A tool renamed the output."""

from pathlib import Path

import onnx

from onnx_ci.artifact import layout


def tamper(artifact: Path) -> None:
    model = onnx.load(str(artifact / "model.onnx"))
    for node in model.graph.node:
        node.output[:] = ["renamed" if name == model.graph.output[0].name else name for name in node.output]
    model.graph.output[0].name = "renamed"
    onnx.save(model, str(artifact / "model.onnx"))
    layout.write_manifest(artifact)
