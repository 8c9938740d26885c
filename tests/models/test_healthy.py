"""onnx-ci fails none of the healthy example models, and the demo passes with its goldens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomllib

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
HEALTHY = sorted(tomllib.loads((FIXTURES / "onnx-ci.toml").read_text())["models"])
DEMO = sorted(tomllib.loads((FIXTURES / "demo.toml").read_text())["models"])
TARGETS = {"export", "cpu"}

pytestmark = [pytest.mark.torch, pytest.mark.timeout(1800)]


def onnx_ci(config: Path, out: Path) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Runs the main job as a newcomer would, with nothing of this process's environment but the PATH."""
    command = [Path(sys.executable).with_name("onnx-ci"), "run", "--config", config, "--python", sys.executable]
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [*map(str, command), "--out", str(out)], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1700
    )
    report = out / "report" / "report.json"
    assert report.exists(), done.stderr
    return done, json.loads(report.read_text())


def told(report: dict[str, Any], model: str, *statuses: str) -> Iterator[str]:
    for result in report["results"]:
        for finding in result["findings"] if result["model"] == model else []:
            if finding["status"] in statuses:
                yield f"{result['target']}: {finding['rule']} {finding['subject']}: {finding['message']}"


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    return onnx_ci(FIXTURES / "onnx-ci.toml", tmp_path_factory.mktemp("healthy"))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    return onnx_ci(FIXTURES / "demo.toml", tmp_path_factory.mktemp("demo"))


@pytest.mark.parametrize("model", HEALTHY)
def test_a_healthy_model_is_never_failed(healthy, model: str):
    _, report = healthy
    assert {result["target"] for result in report["results"] if result["model"] == model} == TARGETS
    assert list(told(report, model, "fail", "error")) == []


@pytest.mark.parametrize("model", HEALTHY)
def test_a_healthy_model_is_judged_by_values(healthy, model: str):
    _, report = healthy
    figures = [entry for result in report["results"] if result["model"] == model for entry in result["parity"]]
    assert figures
    assert {entry["status"] for entry in figures} <= {"pass", "warn"}


def test_the_run_over_all_healthy_models_exits_with_0(healthy):
    done, report = healthy
    assert report["missing"] == []
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("model", DEMO)
def test_the_demo_compares_each_model_with_its_golden(demo, model: str):
    _, report = demo
    assert any("golden." in line for line in told(report, model, "pass"))
    assert list(told(report, model, "fail", "error")) == []


def test_the_demo_ends_with_the_table_and_names_the_files_it_wrote(demo):
    done, _ = demo
    assert done.returncode == 0, done.stdout[-3000:]
    for expected in (*DEMO, "report.json", "comment.md", "junit.xml"):
        assert expected in done.stdout
