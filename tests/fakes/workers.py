"""Real workers without the rest of a run: exports as the command makes them, and nobody who watches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onnx_ci.records.model import CPU, Config, ModelSpec, TargetSpec
from onnx_ci.records.result import Result
from onnx_ci.worker import job
from onnx_ci.worker.launch import Workers


class Quiet:
    """Shows no progress."""

    def begin(self, what: str) -> None:
        pass

    def stage(self, name: str) -> None:
        pass

    def end(self, result: Result, log: Path) -> None:
        pass


def export(project: Path, workers: Workers, *models: ModelSpec, out: str = "out", **more: Any) -> list[Result]:
    """The results of models whose entrypoints lie in a project's folder, for a target on the CPU."""
    targets = [TargetSpec(name="cpu", provider=CPU)]
    config = Config(path=str(project / "onnx-ci.toml"), models=list(models), targets=targets, **more)
    folders = job.Folders(root=project, out=project / out, golden=project / "golden")
    folders.prepare()
    return [outcome.result for outcome in job.export_models(config, models, folders, workers, Quiet())]
