"""The graph before the exporter's optimizer: kept beside the one that ships, run in float64, and judged."""

from __future__ import annotations

from contextlib import nullcontext

import onnx
import pytest
import torch
from torch import nn

from onnx_ci.artifact import layout
from onnx_ci.export import evaluate, graph, save, translation
from onnx_ci.export.options import Options
from onnx_ci.export.types import RunCase
from onnx_ci.twin import Twin, amplification

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


def test_folded_constants_are_named_and_their_rounding_is_measured_before_the_fold(tmp_path):
    told, folder, _ = judged(tmp_path, Does(positions).eval(), ["batch", 900, 4], {"batch": (1, 4)}, {"batch": 2})
    (output,) = told.cases[0].outputs
    assert told.made
    assert told.findings[0].status == "pass"
    x = {"x": torch.zeros(2, 900, 4).numpy()}
    (here,) = amplification(Twin.open(folder / layout.MODEL), x, told.made).values()
    assert output.rounding > 3 * here, "the chain of angles amplifies, and is no longer in the file"


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
