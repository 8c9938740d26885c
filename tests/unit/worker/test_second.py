"""The second export beside the first: in time, in a worker of its own, and never the end of the first."""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.workers import export

from onnx_ci.artifact.layout import Artifact, changed_files
from onnx_ci.records.messages import ExportRequest, Request
from onnx_ci.records.model import DimSpec, InputSpec, ModelSpec
from onnx_ci.records.result import Finding, Result, StageCost
from onnx_ci.worker.launch import Workers
from onnx_ci.worker.second import STAGE, second_export

pytestmark = pytest.mark.torch

ENTRY = """
import os, time
from pathlib import Path
import torch

def good():
    torch.manual_seed(0)
    return torch.nn.Linear(3, 2).eval()

def again(what):
    loads = Path(f"{what}.loads")
    loads.write_text(loads.read_text() + "x" if loads.exists() else "x")
    if len(loads.read_text()) == 2:
        {"aborts": os.abort, "hangs": lambda: time.sleep(600), "raises": lambda: 1 / 0}[what]()
    return good()

def aborts():
    return again("aborts")

def hangs():
    return again("hangs")

def raises():
    return again("raises")

def stops():
    class Eigenvalues(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.eigvals(x @ x.T).real
    return Eigenvalues().eval()
"""


def model(function: str, *, fixed: bool = False, time_limit: float = 120.0) -> ModelSpec:
    parameter = "x" if function == "stops" else "input"
    return ModelSpec(
        name=f"{function}-fixed" if fixed else function,
        entrypoint=f"entry.py:{function}",
        inputs={parameter: InputSpec(dtype="float32", shape=[2 if fixed else "rows", 3])},
        dims={} if fixed else {"rows": DimSpec(min=1, max=16, example=2)},
        time_limit=time_limit,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("second")
    (folder / "entry.py").write_text(ENTRY)
    return folder


@pytest.fixture(scope="module")
def workers(project):
    with Workers(Path(sys.executable), folder=project, environment=os.environ, preload=["torch", "warm"]) as started:
        yield started


def told(result: Result) -> Finding:
    (found,) = [one for one in result.findings if one.rule == "contract.second-export"]
    return found


@pytest.fixture(scope="module")
def good(project, workers) -> Result:
    (result,) = export(project, workers, model("good"))
    return result


def test_the_finding_and_the_cost_join_the_first_exports(good):
    assert told(good).status == "pass"
    assert "rows = 4" in told(good).message
    assert good.stages[STAGE].seconds > 0
    assert good.stages[STAGE].peak_bytes


def test_the_artifact_is_left_as_it_was(good, project):
    artifact = Artifact(project / "out" / "artifacts" / "good")
    assert changed_files(artifact) == []
    assert artifact.digest() == good.artifact
    assert [entry.name for entry in artifact.folder.parent.iterdir() if entry.name.startswith(".")] == []


@pytest.mark.parametrize(("function", "said"), [("aborts", "SIGABRT"), ("raises", "division by zero")])
def test_one_that_breaks_is_a_warning_with_its_cause(project, workers, function, said):
    (result,) = export(project, workers, model(function))
    assert result.artifact
    assert result.status == "warn"
    assert told(result).status == "warn"
    assert said in told(result).message


def test_one_that_hangs_ends_with_the_time_limit(project, workers):
    began = time.monotonic()
    (result,) = export(project, workers, model("hangs", time_limit=12.0))
    assert time.monotonic() - began < 40
    assert (told(result).status, result.status) == ("warn", "warn")
    assert "time_limit" in told(result).message


def test_without_a_dynamic_dim_there_is_none(project, workers):
    (result,) = export(project, workers, model("good", fixed=True))
    assert told(result).status == "skip"
    assert "no dim varies" in told(result).message
    assert STAGE not in result.stages


def test_an_export_that_stopped_has_none(project, workers):
    (result,) = export(project, workers, model("stops"))
    assert result.status == "fail"
    assert (told(result).status, told(result).message) == ("skip", "the export gave no artifact")


def test_one_that_would_not_fit_into_the_time_limit_is_not_begun(good, project, workers):
    before = replace(good, findings=[], stages={"capture": StageCost(seconds=30.0)})
    first = ExportRequest(
        job=Artifact(project / "out" / "artifacts" / "good").job(),
        root=str(project),
        artifact=str(project / "out" / "artifacts" / "good"),
    )
    request = Request(id=0, verb="export", log=os.devnull, time_limit=60.0)
    result = second_export(before, first, request, 50.0, workers, lambda _: None, time.monotonic)
    assert told(result).status == "skip"
    assert told(result).message == "it would take about 45 s, and 10 s of time_limit are left"
