"""A cache restores the weights of yesterday: another file of the same size."""

from pathlib import Path


def tamper(artifact: Path) -> None:
    data = artifact / "model.onnx.data"
    data.write_bytes(bytes(reversed(data.read_bytes())))
