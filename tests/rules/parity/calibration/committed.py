"""A calibration as it was committed: for this contract, and by default made with what is installed."""

import json
from importlib.metadata import version
from pathlib import Path

from onnx_ci.artifact import golden

CONTRACT = {
    "contract_version": 1,
    "inputs": [{"name": "x", "dtype": "float32", "shape": ["batch", 6]}],
    "outputs": [{"name": "logits", "dtype": "float32", "shape": ["batch", 5]}],
    "dims": {"batch": {"min": 1, "max": 4, "multiple_of": 1}},
    "frozen": {},
}


def commit(project: Path, **versions: str) -> None:
    """Writes `onnx-ci.calibration.json`."""
    installed = {name: version(name).partition("+")[0] for name in ("torch", "onnx", "onnxscript", "onnxruntime")}
    calibration = {
        "date": "2026-01-01",
        "provider": "CPUExecutionProvider",
        "options": {},
        "runs": ["optimization all, 1 thread"],
        "cases": {"example": "0123456789abcdef"},
        "versions": installed | versions,
        "machine": {"cpu": "a processor", "cores": "2", "platform": "Linux"},
        "artifact": "0" * 64,
        "contract": golden.digest(CONTRACT),
        "observed": {"logits": 3.1},
    }
    made = {"schema_version": 1, "models": {"model": {"cpu": calibration}}}
    (project / "onnx-ci.calibration.json").write_text(json.dumps(made), encoding="utf-8")
