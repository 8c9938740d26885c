"""What a failing gate says of the two broken examples: the rule, and the user's line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], dict[str, list[dict]]]:
    out = tmp_path_factory.mktemp("broken")
    command = [sys.executable, "-m", "onnx_ci", "run", "--config", "fixtures/broken.toml", "--out", str(out)]
    command += ["--model", "fixed_grid", "--model", "short_or_long", "--python", sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    report = json.loads((out / "report" / "report.json").read_text())
    failing: dict[str, list[dict]] = {}
    for result in report["results"]:
        failing.setdefault(result["model"], []).extend(f for f in result["findings"] if f["status"] == "fail")
    return done, failing


def line_of(text: str) -> int:
    lines = (ROOT / "fixtures" / "broken" / "model.py").read_text().splitlines()
    return 1 + next(at for at, line in enumerate(lines) if text in line)


def test_a_broken_promise_is_exit_code_one(run):
    done, _ = run
    assert done.returncode == 1, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("model", "rule", "text"),
    [
        ("fixed_grid", "contract.guard", "adaptive_avg_pool2d(features"),
        ("fixed_grid", "contract.second-export", "adaptive_avg_pool2d(features"),
        ("short_or_long", "contract.range", "if clips.shape[1] > 16"),
        ("short_or_long", "contract.second-export", "clips.mean(1)"),
    ],
)
def test_the_rule_and_the_line_are_named(run, model, rule, text):
    _, failing = run
    places = [(found["file"], found["line"]) for found in failing[model] if found["rule"] == rule]
    assert ("fixtures/broken/model.py", line_of(text)) in places
