"""What ends the process that runs it, the file or torch.compile: the export stands all the same, and it is told."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tests.fakes.workers import export
from tests.rules.projects import HERE

from onnx_ci.artifact.layout import Artifact
from onnx_ci.config.load import load
from onnx_ci.records.model import InputSpec, LatencySpec, ModelSpec
from onnx_ci.worker.launch import Workers


def test_an_export_whose_file_ends_the_process_is_made_without_running_it(tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(HERE / "environment" / "worker" / "runtime-crash" / "broken", project)
    (model,) = load(project / "onnx-ci.toml", cwd=project).models
    with Workers(Path(sys.executable), folder=project, environment=os.environ, preload=["torch"]) as workers:
        (result,) = export(project, workers, model)
    (crash,) = [one for one in result.findings if one.status == "error"]
    assert result.status == "error"
    assert crash.hint == "Its log ends with: ONNX Runtime runs case 'width-min' (width=2), which the export leaves out"
    artifact = Artifact(project / "out" / "artifacts" / "model")
    assert result.artifact is not None
    assert artifact.cases().made is None  # nobody looked: a judge must not take it for none
    assert "export.exported" in {one.rule for one in result.findings}


ENTRY = """
import os, torch

class Net(torch.nn.Module):
    def forward(self, x):
        if torch.compiler.is_dynamo_compiling():
            os.abort()
        return x.relu()

def build():
    return Net().eval()
"""


def test_a_module_that_ends_the_process_when_it_is_compiled_is_exported_and_passes(tmp_path: Path) -> None:
    (tmp_path / "entry.py").write_text(ENTRY)
    inputs = {"x": InputSpec(dtype="float32", shape=[2, 3])}
    model = ModelSpec(name="net", entrypoint="entry.py:build", inputs=inputs)
    spec = LatencySpec(budget_seconds=0.1, torch_compile=True)
    with Workers(Path(sys.executable), folder=tmp_path, environment=os.environ, preload=["torch"]) as workers:
        (result,) = export(tmp_path, workers, model, latency=spec)
    assert result.status in ("pass", "warn")
    assert {one.runner for one in result.latency} == {"onnxruntime", "eager"}
    (told,) = [one for one in result.findings if one.rule == "latency.measured"]
    assert (told.status, told.subject, "SIGABRT" in told.message) == ("skip", "torch.compile", True)
