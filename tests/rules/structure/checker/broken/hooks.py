"""A tool that cut nodes off left their readers behind."""

from pathlib import Path

import onnx

from onnx_ci.artifact import layout


def tamper(artifact: Path) -> None:
    model = onnx.load(str(artifact / "model.onnx"))
    del model.graph.initializer[:]
    onnx.save(model, str(artifact / "model.onnx"))
    layout.write_manifest(artifact)
