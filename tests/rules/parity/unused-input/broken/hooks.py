"""A tool removed an input that has no effect."""

from pathlib import Path

import onnx

from onnx_ci.artifact import layout


def tamper(artifact: Path) -> None:
    model = onnx.load(str(artifact / "model.onnx"))
    del model.graph.input[1]
    onnx.save(model, str(artifact / "model.onnx"))
    layout.write_manifest(artifact)
