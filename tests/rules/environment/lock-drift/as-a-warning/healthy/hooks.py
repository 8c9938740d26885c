"""The lock fixes what is installed; a local version such as +cpu is no other one."""

from importlib.metadata import version
from pathlib import Path


def prepare(project: Path) -> None:
    pins = [f"{name}=={version(name).partition('+')[0]}" for name in ("numpy", "onnx", "onnxruntime", "torch")]
    (project / "requirements.lock").write_text("\n".join(pins) + "\n")
