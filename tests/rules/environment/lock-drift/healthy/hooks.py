"""Locks what is installed, and what is not meant for this machine."""

from importlib.metadata import version
from pathlib import Path


def prepare(project: Path) -> None:
    names = ("numpy", "onnx", "onnxruntime", "torch")
    pins = [f"{name}=={version(name).partition('+')[0]}" for name in names]
    elsewhere = ['numpy==1.13.0 ; python_version < "3"', "a-package-that-nobody-needs-here==1.0"]
    (project / "requirements.lock").write_text("\n".join([*pins, *elsewhere]) + "\n")
