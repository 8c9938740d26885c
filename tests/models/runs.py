"""The main job over an example config, run as a newcomer would, and what its report tells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def onnx_ci(config: Path, out: Path, *models: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Runs the main job with nothing of this process's environment but the PATH: all models, or those named."""
    command = [Path(sys.executable).with_name("onnx-ci"), "run", "--config", config, "--python", sys.executable]
    command += [word for model in models for word in ("--model", model)]
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [*map(str, command), "--out", str(out)], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1700
    )
    report = out / "report" / "report.json"
    assert report.exists(), done.stderr
    return done, json.loads(report.read_text())


def told(report: dict[str, Any], model: str, *statuses: str) -> Iterator[str]:
    """The findings on a model that have one of the statuses."""
    for result in report["results"]:
        for finding in result["findings"] if result["model"] == model else []:
            if finding["status"] in statuses:
                yield f"{result['target']}: {finding['rule']} {finding['subject']}: {finding['message']}"
