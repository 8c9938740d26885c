"""A tool wrote another size for the output than its operators give."""

from pathlib import Path

import onnx

from onnx_ci.artifact import layout


def tamper(artifact: Path) -> None:
    model = onnx.load(str(artifact / "model.onnx"))
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 7
    onnx.save(model, str(artifact / "model.onnx"))
    layout.write_manifest(artifact)
