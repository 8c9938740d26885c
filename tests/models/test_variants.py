"""One entrypoint, two known resolutions: artifact, golden, list entry and row each, through the command line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from onnx_ci.artifact import variants
from onnx_ci.artifact.layout import Artifact

FIXTURES = Path(__file__).parents[2] / "fixtures"
LABELS = ["ratio_pool@48x60", "ratio_pool@90x50"]
CONFIG = """\
[models.ratio_pool]
entrypoint = "model.py:build"
reference = "model.py:original"
outputs = ["scores"]
cases = ["model.py:cases"]
inputs.images = { dtype = "float32", shape = ["batch", 3, "height", "width"], low = 0.0, high = 1.0 }
dims.batch = { min = 1, max = 8, example = 2 }

[[models.ratio_pool.variants]]
name = "48x60"
kwargs = { height = 48, width = 60, short = 2 }
dims = { height = 48, width = 60 }

[[models.ratio_pool.variants]]
name = "90x50"
kwargs = { height = 90, width = 50 }
dims = { height = 90, width = 50 }

[latency]
budget_seconds = 0.05
"""

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]


def onnx_ci(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    command = [sys.executable, "-m", "onnx_ci", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def found(folder: Path, out: str = "out") -> dict[str, list[dict[str, Any]]]:
    """The findings of each leg."""
    return {path.stem: json.loads(path.read_text())["findings"] for path in (folder / out / "results").glob("*.json")}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("variants")
    shutil.copy(FIXTURES / "ratio_pool" / "model.py", folder)
    (folder / "onnx-ci.toml").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def done(project: Path) -> subprocess.CompletedProcess[str]:
    ended = onnx_ci(project, "run", "--out", "out", "--python", sys.executable)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended


def test_each_variant_has_its_artifact_and_the_model_itself_has_none(project, done):
    artifacts = project / "out" / "artifacts"
    assert sorted(path.name for path in artifacts.iterdir() if path.is_dir()) == LABELS
    shapes = [Artifact(artifacts / name).contract().inputs[0].shape for name in LABELS]
    assert shapes == [["batch", 3, 48, 60], ["batch", 3, 90, 50]]


def test_the_contract_says_what_the_variant_was_made_of(project, done):
    contract = Artifact(project / "out" / "artifacts" / LABELS[1]).contract()
    assert (contract.kwargs, contract.variant) == ({"height": 90, "width": 50}, "90x50")
    assert contract.declared["fixed"] == {"height": 90, "width": 50}
    assert contract.declared["inputs"]["images"]["named"] == ["batch", 3, "height", "width"]
    assert contract.export_options["dynamic_shapes"] == {"images": {"0": "batch"}}


def test_the_list_of_variants_lies_beside_them(project, done):
    listed = variants.read(variants.path_of(project / "out" / "artifacts", "ratio_pool"))
    assert [(one.variant, one.folder) for one in listed.variants] == [("48x60", LABELS[0]), ("90x50", LABELS[1])]


def test_each_variant_runs_the_cases_of_its_own_size(project, done):
    for name, own, other in zip(LABELS, ("wide", "tall"), ("tall", "wide"), strict=True):
        cases = Artifact(project / "out" / "artifacts" / name).cases().cases
        assert [case.name for case in cases if case.origin == "user"] == [own]
        (said,) = [one for one in found(project)[f"{name}.export"] if one["rule"] == "contract.case"]
        assert said["status"] == "skip"
        assert other in said["message"]


def test_a_fixed_size_is_never_called_dynamic_and_no_dim_static(project, done):
    told = [one for name in LABELS for one in found(project)[f"{name}.cpu"] if one["rule"] == "contract.static-dim"]
    assert [(one["status"], one["message"]) for one in told] == [
        ("pass", "every declared dim is dynamic in the file: batch")
    ] * 2


def test_the_report_has_a_row_for_each_variant(project, done):
    text = (project / "out" / "report" / "comment.md").read_text()
    rows = re.findall(r"^\| `(ratio_pool@[^`]*)` \| export \| ✅", text, re.MULTILINE)
    assert rows == LABELS
    assert len(re.findall(r"^\| \| cpu \| ✅", text, re.MULTILINE)) == 2
    assert all(name in done.stdout for name in LABELS)


def test_the_plan_expects_each_variant(project, done):
    legs = json.loads((project / "out" / "plan.json").read_text())["legs"]
    assert [f"{leg['model']}@{leg['variant']} {leg['target']}" for leg in legs] == [
        f"{name} {target}" for name in LABELS for target in ("export", "cpu")
    ]


def test_goldens_are_kept_by_variant(project, done):
    assert onnx_ci(project, "golden", "accept", "--out", "out").returncode == 0
    assert sorted(path.name for path in (project / "golden").iterdir()) == LABELS
    checked = onnx_ci(project, "golden", "check", "--out", "out", "--python", sys.executable)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert all(f"pass  {name}: golden.drift" in checked.stdout for name in LABELS)


def test_an_artifact_of_another_config_is_stale_and_says_in_what(project, done):
    other = project / "other.toml"
    other.write_text(CONFIG.replace("max = 8", "max = 4"))
    arguments = ["verify", "--config", "other.toml", "--artifacts", "out/artifacts", "--out", "judged"]
    ended = onnx_ci(project, *arguments, "--model", LABELS[0], "--python", sys.executable)
    (said,) = [one for one in found(project, "judged")[f"{LABELS[0]}.cpu"] if one["rule"] == "contract.stale"]
    assert (ended.returncode, said["status"], said["file"]) == (1, "fail", "other.toml")
    assert "dims.batch.max was 8, is 4" in said["message"]


def test_a_contract_that_breaks_the_bases_fails_and_the_comment_shows_it(project, done):
    (project / "narrower.toml").write_text(CONFIG.replace("max = 8", "max = 4"))
    arguments = ["run", "--config", "narrower.toml", "--base", "out/artifacts", "--out", "head"]
    ended = onnx_ci(project, *arguments, "--model", LABELS[0], "--python", sys.executable)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    comment = (project / "head" / "report" / "comment.md").read_text()
    assert "Contract changes against the base (1 breaking)" in comment
    assert "the range of batch was narrowed from \\[1, 8\\] to \\[1, 4\\]" in comment
    assert "contract.breaking" in (project / "head" / "report" / "junit.xml").read_text()
