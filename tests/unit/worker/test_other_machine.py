"""An artifact made on one machine is judged on another: PyTorch's own difference between them is inside the budget.

The other machine is this one with the instructions of an old processor for PyTorch, oneDNN and MKL.
"""

import os
import sys
from pathlib import Path

import pytest
from tests.fakes.workers import Quiet

from onnx_ci.artifact import tensors
from onnx_ci.artifact.layout import Artifact
from onnx_ci.records.model import Config, InputSpec, LatencySpec, ModelSpec, TargetSpec
from onnx_ci.records.result import Result
from onnx_ci.worker import job
from onnx_ci.worker.launch import Workers

pytestmark = pytest.mark.torch

OLD = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_CBWR": "COMPATIBLE"}
ENTRY = """
import torch

def build():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(),
        torch.nn.Linear(512, 256), torch.nn.GELU(), torch.nn.Linear(256, 40), torch.nn.Softmax(-1),
    ).eval()
"""


def export(folders: job.Folders, config: Config, environment: dict[str, str]) -> Result:
    with Workers(Path(sys.executable), folder=folders.root, environment=environment, preload=["torch"]) as workers:
        (outcome,) = job.export_models(config, config.models, folders, workers, Quiet())
    return outcome.result


def test_an_artifact_of_another_processor_passes(tmp_path):
    (tmp_path / "entry.py").write_text(ENTRY)
    spec = ModelSpec(
        name="net",
        entrypoint="entry.py:build",
        inputs={"input": InputSpec(dtype="float32", shape=[2, 3, 24, 24])},
        time_limit=300.0,
    )
    targets = [TargetSpec(name="cpu", provider="CPUExecutionProvider")]
    latency = LatencySpec(budget_seconds=0.05)
    config = Config(path=str(tmp_path / "onnx-ci.toml"), models=[spec], targets=targets, latency=latency)
    folders = job.Folders(root=tmp_path, out=tmp_path / "out", golden=tmp_path / "golden")
    folders.prepare()
    made = export(folders, config, {**os.environ, **OLD})
    artifact = Artifact(folders.artifacts / "net")
    assert made.artifact == artifact.digest()
    assert differs_here(artifact, tmp_path), "the old instructions changed nothing: this shows nothing"
    with Workers(Path(sys.executable), folder=tmp_path, environment=os.environ, preload=["verify"]) as workers:
        (outcome,) = job.verify_artifacts([(artifact, config.job(spec))], [], folders, workers, Quiet())
    assert [one for one in outcome.result.findings if one.status in ("warn", "fail", "error")] == []
    assert any(one.rule == "parity.runtime" and one.status == "pass" for one in outcome.result.findings)


def differs_here(artifact: Artifact, root: Path) -> bool:
    """Whether PyTorch with this processor's own instructions gives other bits than the artifact holds."""
    import torch

    scope: dict = {}
    exec((root / "entry.py").read_text(), scope)
    module = scope["build"]()
    for case in artifact.cases().cases:
        (given,) = tensors.read_values(artifact.case_folder(case.index), "input").values()
        (stored,) = tensors.read_values(artifact.case_folder(case.index), "output").values()
        with torch.no_grad():
            if not bool((module(torch.from_numpy(given.copy())).numpy() == stored).all()):
                return True
    return False
