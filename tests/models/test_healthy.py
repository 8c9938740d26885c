"""onnx-ci fails none of the healthy example models, and the demo passes with its goldens."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
import tomllib
from tests.models.runs import ROOT, onnx_ci, told

FIXTURES = ROOT / "fixtures"
HEALTHY = sorted(tomllib.loads((FIXTURES / "onnx-ci.toml").read_text())["models"])
DEMO = sorted(tomllib.loads((FIXTURES / "demo.toml").read_text())["models"])
TARGETS = {"export", "cpu"}

pytestmark = [pytest.mark.torch, pytest.mark.timeout(1800)]


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
