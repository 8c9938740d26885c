"""The artifact's first check: what is at fault, where it begins, and nothing at all where all is well."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
import torch
from tests.unit.export.subjects import Does, subject_of
from torch import nn

from onnx_ci.artifact import layout
from onnx_ci.divergence.locate import locate
from onnx_ci.export import arrays, check, evaluate, graph, save, translation
from onnx_ci.export.diverge import How, Rounded, diverge, in_float64
from onnx_ci.export.inner import NotReplayed, Replay
from onnx_ci.export.options import Options
from onnx_ci.export.seen import Seen
from onnx_ci.export.types import RunCase
from onnx_ci.records.model import TargetSpec
from onnx_ci.twin import Twin

pytestmark = pytest.mark.torch

CPU = [TargetSpec(name="cpu", provider="CPUExecutionProvider")]
IMAGE = ["batch", 3, 8, 8]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.conv, self.act = nn.BatchNorm2d(3), nn.Conv2d(3, 3, 3, padding=1), nn.GELU()

    def forward(self, x):
        return self.act(self.norm(self.conv(x))) + x


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, x):
        features = self.blocks(x).mean((2, 3))
        return {"features": features, "twice": features * 2}


class Flat(nn.Module):
    """A convolution by 1e30 and a batch norm by 1e25: each is harmless, and their product is no float32."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 1, 1), nn.BatchNorm2d(1, eps=1e-30)
        with torch.no_grad():
            self.conv.weight.fill_(1e20)
            self.conv.bias.zero_()
            self.norm.weight.fill_(1e10)
            self.norm.running_var.zero_()

    def forward(self, x):
        return self.norm(self.conv(x * 1e-20))


class Shipped:
    """A module, its graph and its file, on one case."""

    def __init__(self, folder, module, axes=IMAGE, dims=None, example=None, **options):
        torch.manual_seed(0)
        dims, example = dims or {"batch": (1, 8)}, example or {"batch": 2}
        options = Options("dynamo", None, None, **options)
        self.subject = replace(subject_of(module, axes, dims, example), options=options)
        self.folder, self.repros = folder / "artifact", folder / "out" / "repro" / "model"
        self.folder.mkdir()
        built = graph.build(self.subject, lambda _: contextlib.nullcontext())
        assert not isinstance(built, list), built
        self.graph = built
        self.cases = [RunCase("example", "example", "", self.subject.example, dict(example))]
        save.save(built.model, self.folder, single_file=None)

    @property
    def file(self):
        return self.folder / layout.MODEL

    def edit(self, change):
        model = onnx.load(self.file, load_external_data=False)
        change({node.name: node for node in model.graph.node})
        onnx.save(model, self.file)

    def judged(self, targets=CPU):
        seen = evaluate.evaluate(self.subject, self.graph, self.cases, self.folder)
        before = self.folder.with_name("before")
        before.mkdir()
        save.save(self.graph.unoptimized, before, single_file=None)
        wrong = translation.judge(seen.cases, self.subject.module, self.folder, before).wrong
        return check.judge(self.subject, self.graph, seen.cases, self.folder, targets, self.repros, wrong)


def flip_gelu(nodes):
    (gelu,) = [node for name, node in nodes.items() if name == "node_gelu_1"]
    del gelu.attribute[:]
    gelu.attribute.append(onnx.helper.make_attribute("approximate", "tanh"))


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    return Shipped(tmp_path_factory.mktemp("blocks"), Blocks())


def shown(shipped, found):
    """What the script of a finding's folder says, and its exit code."""
    script = shipped.repros.parents[1] / found.data["repro"] / "repro.py"
    done = subprocess.run([sys.executable, "-I", str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_nothing_is_found_where_all_is_well(blocks):
    assert blocks.judged() == []
    assert not blocks.repros.exists()


def test_the_inputs_of_a_case_lie_where_the_module_does(blocks):
    evaluated = evaluate.evaluate(blocks.subject, blocks.graph, blocks.cases, blocks.folder)
    elsewhere = {"x": blocks.subject.example["x"].to("meta")}
    seen = Seen(replace(blocks.subject, example=elsewhere), blocks.graph, blocks.folder, blocks.subject.spec.parity)
    assert seen.inputs(evaluated.cases[0])["x"].device.type == "meta"


def test_the_node_that_was_changed_is_named_once_with_its_module_and_line(tmp_path):
    shipped = Shipped(tmp_path, Blocks())
    shipped.edit(flip_gelu)
    (found,) = shipped.judged()
    assert (found.rule, found.status, found.subject) == ("parity.divergence", "fail", "features")
    assert found.data["outputs"] == ["features", "twice"]
    assert (found.data["node"], found.data["op"], found.data["value"]) == ("node_gelu_1", "Gelu", "gelu_1")
    assert (found.data["module"], found.data["rung"], found.data["cause"]) == ("blocks.1.act", "optimizer", True)
    assert "add_3" not in found.data["carriers"]
    assert "twice" in found.data["carriers"]
    assert "features and 1 more first go wrong at node node_gelu_1 (Gelu) of module blocks.1.act" in found.message
    assert "self.act(self.norm(self.conv(x))) + x" in Path(found.file).read_text().splitlines()[found.line - 1]
    code, said = shown(shipped, found)
    assert code == 1
    assert "elements differ, by up to" in said


def test_a_wrong_translation_is_told_from_the_optimizer(tmp_path):
    shipped = Shipped(tmp_path, nn.Sequential(nn.AvgPool2d(3, stride=2, divisor_override=4), nn.ReLU()))
    (found,) = shipped.judged()
    assert (found.data["rung"], found.data["op"], found.data["module"]) == ("translation", "AveragePool", "0")
    assert "the translation is at fault" in found.message
    assert shown(shipped, found)[0] == 1


def test_the_exporters_optimizer_is_named_with_its_rule(tmp_path):
    (found,) = Shipped(tmp_path, Flat()).judged()
    assert found.data["rung"] == "optimizer"
    assert "the exporter's optimizer is at fault (" in found.message
    assert "FuseBatchNormIntoConv" in found.message


def test_an_optimization_of_the_runtime_is_named(tmp_path):
    shipped = Shipped(tmp_path, Flat(), optimize=False)
    (found,) = shipped.judged()
    assert found.status == "warn"
    assert (found.data["rung"], found.data["optimizers"]) == ("runtime", ["ConvBNFusion"])
    assert "an optimization of ONNX Runtime is at fault (ConvBNFusion): without it the file is right" in found.message
    assert shown(shipped, found)[0] == 1


def test_a_branch_of_the_example_is_the_captures_fault(tmp_path):
    def branch(x):
        return x * 2 if x.shape[0] <= 4 else x + 1

    shipped = Shipped(tmp_path, Does(branch), ["batch", 3])
    long = torch.linspace(-1, 1, 18).reshape(6, 3)
    shipped.cases.append(RunCase("long", "user", "", {"x": long}, {"batch": 6}))
    (found,) = shipped.judged()
    assert (found.data["rung"], found.data["case"], found.data["repro"]) == ("capture", "long", "")
    assert "capture is at fault" in found.message


class Unwritable:
    """A place for folders that can't be named."""

    def __truediv__(self, name):
        raise ValueError(f"no folder can have the name {name}")


def test_what_goes_wrong_in_looking_costs_no_export(tmp_path):
    shipped = Shipped(tmp_path, nn.AvgPool2d(3, stride=2, divisor_override=4))
    shipped.repros = Unwritable()
    (found,) = [one for one in shipped.judged() if one.status == "skip"]
    assert (found.rule, found.data["case"]) == ("parity.divergence", "example")
    assert "could not be told: ValueError: no folder can have the name" in found.message


def test_without_a_target_on_the_cpu_it_is_a_warning(tmp_path):
    shipped = Shipped(tmp_path, nn.AvgPool2d(3, stride=2, divisor_override=4))
    (found,) = shipped.judged([TargetSpec(name="gpu", provider="CUDAExecutionProvider")])
    assert found.status == "warn"


def located(shipped, how=None, outputs=("twice",)):
    feeds = {name: arrays.to_value(leaf.value) for name, leaf in shipped.graph.inputs.items()}
    replay = Replay(shipped.subject, shipped.graph, shipped.subject.example)
    return diverge(replay, shipped.file, feeds, list(outputs), how)


def test_values_that_are_held_in_parts_tell_the_same(blocks, monkeypatch, tmp_path):
    changed = Shipped(tmp_path, Blocks())
    changed.edit(flip_gelu)
    whole = located(changed)
    monkeypatch.setattr("onnx_ci.export.diverge.locate", lambda sweep, outputs: locate(sweep, outputs, chunk=1000))
    parts = located(changed)
    assert whole is not None
    assert parts is not None
    assert (whole.gap, whole.carriers) == (parts.gap, parts.carriers)
    assert located(blocks) is None


def test_the_program_in_float64_is_a_reference_for_a_graph_in_float64(blocks):
    """Its own values pass at a limit that float32 does not reach; one that is off by a millionth does not."""
    replay = Replay(blocks.subject, blocks.graph, blocks.subject.example)

    def exact(names):
        return replay.exact(names)

    def off(names):
        return {name: value * (1 + 1e-6) if name == "gelu_1" else value for name, value in replay.exact(names).items()}

    assert located(blocks, How(inner=exact, limit=1e-9)) is None
    assert located(blocks, How(limit=1e-9)) is not None
    found = located(blocks, How(inner=off, limit=1e-9))
    assert found is not None
    assert (found.gap.name, found.is_cause) == ("gelu_1", True)


def test_the_twin_of_a_file_is_held_against_the_program_in_float64(blocks, tmp_path):
    def how(shipped):
        feeds = {name: arrays.to_value(leaf.value) for name, leaf in shipped.graph.inputs.items()}
        twin = Twin.open(shipped.file)
        return in_float64(Rounded(twin, [name for name, _ in twin.float_constants()]), feeds)

    changed = Shipped(tmp_path, Blocks())
    changed.edit(flip_gelu)
    assert located(blocks, how(blocks)) is None
    found = located(changed, how(changed))
    assert found is not None
    assert (found.gap.name, found.nodes[-1].op_type, found.is_cause) == ("gelu_1", "Gelu", True)


class Scaled(nn.Module):
    """A norm, an exponential of fractions and a product: each has constants of its own, and one more norm follows."""

    def __init__(self):
        super().__init__()
        self.norm, self.inner, self.last = nn.LayerNorm(16), nn.Linear(16, 16), nn.LayerNorm(16)

    def forward(self, x):
        table = torch.exp(torch.arange(16.0) * -0.37)
        return self.last(self.inner(self.norm(x * 10) * table).sigmoid())


def enlarge_epsilon(nodes):
    norm = next(node for node in nodes.values() if node.op_type == "LayerNormalization")
    next(one for one in norm.attribute if one.name == "epsilon").f *= 10


def test_a_node_that_float32_does_not_betray_is_named_by_the_twin(tmp_path):
    """Past a table that the exporter folded in float32, which is off by far more than float64's own rounding."""
    shipped = Shipped(tmp_path, Scaled(), ["batch", 16])
    shipped.edit(enlarge_epsilon)
    (found,) = shipped.judged()
    assert (found.rule, found.status, found.data["rung"]) == ("parity.divergence", "fail", "optimizer")
    assert (found.data["op"], found.data["module"]) == ("LayerNormalization", "norm")
    assert found.message.count("in float64") == 1
    assert "self.last(self.inner(self.norm(" in Path(found.file).read_text().splitlines()[found.line - 1]


def test_a_fault_that_float32_shows_is_named_once(tmp_path):
    shipped = Shipped(tmp_path, Scaled(), ["batch", 16])
    shipped.edit(lambda nodes: nodes["node_sigmoid"].__setattr__("op_type", "Tanh"))
    (found,) = shipped.judged()
    assert (found.data["node"], found.data["op"]) == ("node_sigmoid", "Tanh")


def test_inputs_that_do_not_fit_are_told(blocks):
    replay = Replay(blocks.subject, blocks.graph, {"x": torch.ones(2, 3, 8)})
    with pytest.raises(NotReplayed):
        replay.expected(["twice"])
