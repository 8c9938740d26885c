"""Only the model file was uploaded, and its weights were left behind."""

from pathlib import Path

from onnx_ci.artifact import layout


def tamper(artifact: Path) -> None:
    (artifact / "model.onnx.data").unlink()
    layout.write_manifest(artifact)
