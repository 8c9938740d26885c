"""The graph before the exporter's optimizer: kept beside the one that ships, run in float64, and judged."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import onnx
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from onnx_ci.artifact import layout
from onnx_ci.artifact.layout import Artifact
from onnx_ci.export import evaluate, graph, made, program, save, translation
from onnx_ci.export.options import Options
from onnx_ci.export.types import RunCase
from onnx_ci.records.cases import CaseList
from onnx_ci.twin import Twin, amplification
from onnx_ci.verify import function

from .subjects import Does, subject_of

pytestmark = pytest.mark.torch


class Folded(nn.Module):
    """A convolution whose norm the optimizer folds into it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.norm.running_mean.uniform_(-1, 1)
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, images):
        return self.norm(self.conv(images))


def positions(x):
    """A table of angles made in forward: the optimizer computes it in float32, and the angles are gone."""
    angles = torch.arange(900.0)[:, None] * torch.exp(torch.arange(4.0) * -2.1)
    return x + torch.sin(angles)


class Uncopied:
    """A graph that onnx_ir has no copy of."""

    def clone(self):
        raise ValueError("a value of an outer scope")


@pytest.mark.parametrize("model", [Uncopied(), object()])
def test_a_graph_that_can_not_be_copied_ships_without_one_beside_it(model):
    assert program._copied(model) is None


def judged(tmp_path, module, axes, dims, example, **options):
    """What `translation.judge` says, and both folders."""
    subject = subject_of(module, axes, dims, example)
    if options:
        object.__setattr__(subject, "options", Options(options.pop("exporter", "dynamo"), None, None, **options))
    built = graph.build(subject, lambda _: nullcontext())
    assert not isinstance(built, list), built
    folder, before = tmp_path / "artifact", tmp_path / "before"
    folder.mkdir()
    before.mkdir()
    cases = [RunCase("example", "example", "", subject.example, dict(example))]
    seen = evaluate.evaluate(subject, built, cases, folder)
    save.save(built.model, folder, single_file=None)
    if built.unoptimized is not None:
        save.save(built.unoptimized, before, single_file=None)
    there = before if built.unoptimized is not None else None
    return translation.judge(seen.cases, module, folder, there), folder, before


def test_the_graph_before_optimization_is_kept_under_the_same_names(tmp_path):
    told, folder, before = judged(tmp_path, Folded(), ["batch", 3, 8, 8], {"batch": (1, 4)}, {"batch": 2})
    (shipped, first) = (onnx.load(path / layout.MODEL, load_external_data=False) for path in (folder, before))
    assert "BatchNormalization" in {node.op_type for node in first.graph.node}
    assert "BatchNormalization" not in {node.op_type for node in shipped.graph.node}
    assert [item.name for item in first.graph.input] == [item.name for item in shipped.graph.input]
    assert [item.name for item in first.graph.output] == [item.name for item in shipped.graph.output]
    (found,) = told.findings
    assert (found.rule, found.status) == ("parity.translation", "pass")
    assert found.data["e"] < 1e-14


def test_a_chain_that_was_folded_amplifies_only_in_the_graph_before(tmp_path):
    module = Does(positions).eval()
    told, folder, before = judged(tmp_path, module, ["batch", 900, 4], {"batch": (1, 4)}, {"batch": 2})
    assert told.made
    assert told.findings[0].status == "pass"
    x, first = {"x": torch.zeros(2, 900, 4).numpy()}, Twin.open(before / layout.MODEL)
    (here,) = amplification(Twin.open(folder / layout.MODEL), x, told.made).values()
    (there,) = amplification(first, x, made.names(first.float_constants(), made.Own.of(module))).values()
    assert there > 3 * here


def test_rounding_is_measured_where_it_decides(tmp_path):
    torch.manual_seed(0)
    linear = nn.Linear(3, 4)
    scaled = nn.Sequential(linear, Does(lambda x: 0.1 * x + 2.3)).eval()
    told, *_ = judged(tmp_path, scaled, ["batch", 3], {"batch": (1, 4)}, {"batch": 2})
    (output,) = told.cases[0].outputs
    assert output.e_unoptimized > 1e-9
    assert 1e-9 < output.rounding < 1e-7
    assert told.findings[0].status == "pass"


def norms():
    torch.manual_seed(0)
    wide = nn.Conv1d(4, 6, 3)
    yield parametrizations.weight_norm(nn.Conv1d(4, 6, 3)), {"mul"}
    yield parametrizations.weight_norm(nn.Conv1d(4, 6, 3), dim=2), {"mul"}
    yield parametrizations.weight_norm(nn.Linear(16, 16)), {"val_3"}
    yield parametrizations.spectral_norm(nn.Conv1d(4, 6, 3)), {"div"}
    yield nn.Sequential(nn.Conv1d(4, 6, 3), nn.BatchNorm1d(6, eps=5e-8)), {"0.weight", "0.bias"}
    yield nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 16)), set()
    yield nn.Sequential(wide, nn.ReLU(), nn.Conv1d(6, 6, 3), nn.GRU(12, 5)), set()


@pytest.mark.parametrize(("module", "names"), list(norms()))
def test_a_fold_is_told_from_a_weight_by_what_was_there_before_not_by_its_bytes(tmp_path, module, names):
    """At a fresh start a weight norm is 1, and so is a batch norm with a tiny epsilon: the bytes are the weight's."""
    told, folder, _ = judged(tmp_path, module.eval(), ["batch", 4, 16], {"batch": (1, 4)}, {"batch": 2})
    assert set(told.made) == names
    found = function.judge(Artifact(folder), CaseList(schema_version=1, cases=told.cases, made=told.made)).findings
    assert [one.status for one in found] == ["pass"] * len(found)


@pytest.mark.parametrize(
    "harm", [lambda w: w.astype(np.float16).astype(np.float32), lambda w: w * np.float32(1 + 2e-6)]
)
def test_a_harmed_fold_is_found(tmp_path, harm):
    module = parametrizations.weight_norm(nn.Conv1d(4, 6, 3)).eval()
    told, folder, _ = judged(tmp_path, module, ["batch", 4, 16], {"batch": (1, 4)}, {"batch": 2})
    shipped = onnx.load(folder / layout.MODEL)
    (tensor,) = (item for item in shipped.graph.initializer if item.name == "mul")
    tensor.CopyFrom(onnx.numpy_helper.from_array(harm(onnx.numpy_helper.to_array(tensor)), "mul"))
    onnx.save(shipped, folder / layout.MODEL)
    listed = CaseList(schema_version=1, cases=told.cases, made=told.made)
    assert [one.status for one in function.judge(Artifact(folder), listed).findings] == ["fail"]


class Branches(nn.Module):
    """A position table that is computed in float32 where the branch is folded, and a norm."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm = nn.Conv1d(4, 4, 3, padding=1), nn.BatchNorm1d(4)
        self.norm.running_mean.uniform_(-1, 1)
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        def table(x):
            return self.norm(self.conv(x)) + torch.sin(torch.arange(16.0) * 977.7 / 3.3)

        return torch.cond(x.mean() > -10, table, lambda x: self.conv(x) * 0.3, (x,))


def test_constants_inside_a_branch_are_rounded_too(tmp_path):
    told, folder, _ = judged(tmp_path, Branches().eval(), [2, 4, 16], {}, {})
    listed = CaseList(schema_version=1, cases=told.cases, made=told.made)
    (found,) = function.judge(Artifact(folder), listed).findings
    assert (found.status, told.findings[0].status) == ("pass", "pass")
    assert found.data["e"] > 1e-8


def test_the_modules_own_weights_are_not_named(tmp_path):
    told, *_ = judged(tmp_path, nn.Sequential(nn.Linear(3, 4)).eval(), ["batch", 3], {"batch": (1, 4)}, {"batch": 2})
    assert told.made == []
    assert told.cases[0].outputs[0].e_unoptimized < 1e-15
    assert told.cases[0].outputs[0].rounding is None


def test_another_function_fails_here(tmp_path):
    module = nn.AvgPool2d(3, stride=2, divisor_override=4).eval()
    told, *_ = judged(tmp_path, module, ["batch", 3, 9, 9], {"batch": (1, 4)}, {"batch": 2})
    assert [one.status for one in told.findings] == ["fail"]
    assert "before any optimization" in told.findings[0].message


def test_the_older_exporter_gives_no_graph_to_judge(tmp_path):
    told, *_ = judged(
        tmp_path, Folded().eval(), ["batch", 3, 8, 8], {"batch": (1, 4)}, {"batch": 2}, exporter="torchscript"
    )
    assert [one.status for one in told.findings] == ["skip"]
    assert told.made
