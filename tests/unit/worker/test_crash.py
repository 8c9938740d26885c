"""A file that brings its runtime down: the export stands all the same, and is told with what was running."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tests.fakes.workers import export
from tests.rules.projects import HERE

from onnx_ci.artifact.layout import Artifact
from onnx_ci.config.load import load
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
