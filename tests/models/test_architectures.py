"""onnx-ci fails none of the architectures that teams ship, and warns only of what their exporter really did."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import tomllib
from tests.models.runs import ROOT, onnx_ci, told

CONFIG = ROOT / "fixtures" / "architectures.toml"
MODELS = sorted(tomllib.loads(CONFIG.read_text())["models"])
# The time axis of a recurrent layer is written as a number; a position table is resized but for one size.
EXPLAINED = {"gru": ["contract.output-dims"], "lstm": ["contract.output-dims"], "vit": ["contract.guard"]}

Run = tuple[subprocess.CompletedProcess[str], dict[str, Any]]

pytestmark = [pytest.mark.torch, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Run]:
    """Two runs at a time, each over half of the models: the run that a model is in, by its name."""
    halves = [MODELS[::2], MODELS[1::2]]
    folders = [tmp_path_factory.mktemp("architectures") for _ in halves]
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda half, out: onnx_ci(CONFIG, out, *half), halves, folders))
    return {model: run for half, run in zip(halves, done, strict=True) for model in half}


@pytest.mark.parametrize("model", MODELS)
def test_none_is_failed(runs, model: str):
    done, report = runs[model]
    assert report["missing"] == []
    assert done.returncode == 0, done.stdout[-3000:]
    assert {result["target"] for result in report["results"] if result["model"] == model} == {"export", "cpu"}
    assert list(told(report, model, "fail", "error")) == []
    assert {line.split()[1] for line in told(report, model, "warn")} <= set(EXPLAINED.get(model, []))


@pytest.mark.parametrize("model", MODELS)
def test_each_is_judged_by_values(runs, model: str):
    _, report = runs[model]
    figures = [entry for result in report["results"] if result["model"] == model for entry in result["parity"]]
    assert figures
    assert {entry["status"] for entry in figures} == {"pass"}
