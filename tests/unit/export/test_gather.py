"""An export's cases: both sides of a branch, a batch in parts, and size 0 where it is declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnx_ci.artifact.layout import Artifact
from onnx_ci.export.job import export
from onnx_ci.records.messages import ExportRequest, VerifyRequest
from onnx_ci.records.model import DimSpec, InputSpec, JobSpec, LatencySpec, ModelSpec, TargetSpec
from onnx_ci.verify.job import verify

pytestmark = pytest.mark.torch

MODEL = """
import torch
from torch import nn


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        scores = self.head(x)
        return {"scores": scores, "best": scores.argmax(1), "passing": scores[scores[:, 0] > 0], "sum": scores.sum(0)}


def rows():
    torch.manual_seed(0)
    return Rows().eval()


class Clamped(nn.Module):
    def forward(self, x):
        return x[:, :20].cumsum(1)


def clamped():
    return Clamped().eval()
"""
CPU = TargetSpec(name="cpu", provider="CPUExecutionProvider")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "gathered.py").write_text(MODEL)
    return folder


def run(root: Path, function: str, axes: list[int | str], **dims: DimSpec):
    """The case list, the contract, the export's findings and the target's, by rule."""
    model = ModelSpec(
        name=function,
        entrypoint=f"gathered.py:{function}",
        inputs={"x": InputSpec(dtype="float32", shape=axes)},
        dims=dims,
    )
    job = JobSpec(model=model, targets=[CPU], latency=LatencySpec(budget_seconds=0.05))
    folder = root / "out" / function
    exported = export(ExportRequest(job=job, root=str(root), artifact=str(folder)), lambda _: None)
    judged = verify(VerifyRequest(job=job, target=CPU, artifact=str(folder), golden=None), lambda _: None)
    assert [one for one in (*exported.findings, *judged.findings) if one.status in ("fail", "error")] == []
    artifact = Artifact(folder)
    rules = {one.rule: one for one in (*exported.findings, *judged.findings)}
    return artifact.cases(), artifact.contract(), rules


@pytest.fixture(scope="module")
def rows(root):
    return run(root, "rows", ["batch", 6], batch=DimSpec(min=0, max=8, example=3))


def test_a_declared_size_of_zero_is_a_case_that_the_file_answers_as_pytorch_does(rows):
    listed, contract, rules = rows
    (empty,) = [case for case in listed.cases if case.dims == {"batch": 0}]
    shapes = {output.name: output.shape for output in empty.outputs}
    assert shapes == {"scores": [0, 3], "best": [0], "passing": [0, 3], "sum": [3]}
    assert contract.dims["batch"].min == 0
    assert rules["parity.run"].status == "pass"


def test_a_batch_in_parts_is_judged_for_the_outputs_that_have_its_rows(rows):
    listed, _, rules = rows
    identity = listed.batch
    assert (identity.dim, identity.split, identity.permutes) == ("batch", ["scores", "best"], ["scores", "best"])
    assert set(identity.not_held) == {"passing", "sum"}
    sizes = [listed.cases[at].dims["batch"] for at in (identity.whole, *identity.parts, identity.permuted)]
    assert sizes == [3, 1, 2, 3]
    for rule in ("contract.batch-split", "contract.batch-permuted"):
        assert rules[rule].status == "pass"
        assert rules[rule].data["outputs"] == ["scores", "best"]


def test_a_size_of_zero_is_outside_a_contract_that_does_not_declare_it(root):
    listed, contract, rules = run(root, "clamped", ["batch", "time"], time=DimSpec(min=1, max=64, example=8))
    assert contract.dims["batch"].min == 1
    assert all(min(case.dims.values()) >= 1 for case in listed.cases)
    sides = [case for case in listed.cases if case.dims["time"] in (20, 21)]
    assert len(sides) == 2
    assert all("between time 20 and 21" in case.why for case in sides)
    assert rules["contract.output-shape"].status == "pass"
    assert rules["contract.meta"].data["cases"] >= 2
