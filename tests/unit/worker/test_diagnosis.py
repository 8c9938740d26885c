"""What is asked of an export that stopped: in workers of their own, in time, and never at the first finding's cost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fakes.workers import export as exported

from onnx_ci.records.model import DimSpec, ExportSpec, InputSpec, ModelSpec
from onnx_ci.records.result import Finding, Result
from onnx_ci.worker.diagnosis import SCRIPT, STAGE
from onnx_ci.worker.launch import Workers

pytestmark = pytest.mark.torch

ENTRY = """
import os
from pathlib import Path
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(3, 3)

    def forward(self, x, scale=1.0, *, bias=None):
        x = torch.special.bessel_j0(self.q(x) * scale)
        return x if bias is None else x + bias

class Layer(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.attention, self.out = inner, nn.Linear(3, 3)

    def forward(self, x):
        if isinstance(self.attention, Attention):
            return self.out(self.attention(x, scale=2.0, bias=x[:1]))
        return self.out(self.attention(x))

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(nn.Linear(3, 3)), Layer(Attention())])
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

def encoder():
    torch.manual_seed(0)
    return Encoder().eval()

class Half(nn.Module):
    def forward(self, x):
        return x * round(x.shape[0] / 2)

class Halves(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.scaled = nn.Linear(3, 3), Half()

    def forward(self, x):
        return self.scaled(self.first(x))

def halves():
    return Halves().eval()

class Distances(nn.Module):
    def forward(self, x):
        return torch.cdist(x, x)

def distances():
    return Distances().eval()

class Branch(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x

def branch():
    return Branch().eval()

def aborts():
    loads = Path("aborts.loads")
    loads.write_text(loads.read_text() + "x" if loads.exists() else "x")
    if len(loads.read_text()) == 2:
        os.abort()
    return distances()
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("diagnosis")
    (folder / "entry.py").write_text(ENTRY)
    return folder


@pytest.fixture(scope="module")
def workers(project):
    with Workers(Path(sys.executable), folder=project, environment=os.environ, preload=["torch", "warm"]) as started:
        yield started


def export(project: Path, workers: Workers, function: str, exporter: str = "dynamo") -> tuple[Result, Finding]:
    spec = ModelSpec(
        name=function,
        entrypoint=f"entry.py:{function}",
        inputs={"x": InputSpec(dtype="float32", shape=["rows", 3])},
        dims={"rows": DimSpec(min=2, max=16, example=3)},
        export=ExportSpec(exporter=exporter),
    )
    (result,) = exported(project, workers, spec, out=f"out/{exporter}")
    (found,) = [one for one in result.findings if one.rule == "export.stopped"]
    return result, found


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_the_smallest_part_that_still_fails_is_named(project, workers, exporter):
    result, found = export(project, workers, "encoder", exporter)
    assert (found.data["smallest"], found.data["type"]) == ("layers.1.attention", "Attention")
    assert found.message.endswith("; the smallest part that still fails is layers.1.attention (Attention)")
    assert found.data["other_takes"] is False
    assert "stops too" in found.hint
    assert found.data["repro"] == "repro/encoder.export"
    code, said = shown(project, found, exporter)
    assert code == 1
    assert "bessel_j0" in said
    assert result.stages[STAGE].seconds > 0


def shown(project, found, exporter="dynamo"):
    """The exit code of a finding's script, and what it says."""
    script = project / "out" / exporter / found.data["repro"] / SCRIPT
    command = [sys.executable, str(script)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr


def test_a_part_that_fails_only_where_sizes_vary_is_found_with_them(project, workers):
    _, found = export(project, workers, "halves")
    assert found.data["cause"] == "size-as-number"
    assert (found.data["smallest"], found.data["type"]) == ("scaled", "Half")
    code, said = shown(project, found)
    assert code == 1
    assert "No ONNX function found for <built-in function round>" in said


def test_the_other_exporter_is_named_where_it_takes_the_model(project, workers):
    _, found = export(project, workers, "distances")
    assert found.subject == "aten._cdist_forward"
    assert (found.data["other_exporter"], found.data["other_takes"]) == ("torchscript", True)
    assert "exporter = 'torchscript'" in found.hint


def test_the_older_exporter_is_no_way_out_where_it_would_freeze_a_branch(project, workers):
    _, found = export(project, workers, "branch")
    assert found.data["other_takes"] is True
    assert "no way out" in found.hint


def test_the_exporters_own_report_is_kept_beside_the_log(project, workers):
    _, found = export(project, workers, "distances")
    assert found.data["report"] == "logs/distances.export.exporter.md"
    text = (project / "out" / "dynamo" / found.data["report"]).read_text()
    assert "aten._cdist_forward" in text
    assert "Translate the graph into ONNX" in text


def test_a_crash_while_it_is_asked_costs_that_answer_only(project, workers):
    result, found = export(project, workers, "aborts")
    assert result.status == "fail"
    assert "no ONNX translation exists for the operator aten._cdist_forward" in found.message
    assert "could not be looked for: " in found.hint
    assert found.data["other_takes"] is True
