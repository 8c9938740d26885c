"""Own capture refines nothing in silence, says which line narrowed what, and notices when torch has changed."""

from __future__ import annotations

import importlib
import logging
from pathlib import Path

import pytest
import torch
from onnxscript import FLOAT
from onnxscript import opset18 as op
from torch import nn
from torch.export import Dim

from onnx_ci.export import capture, guards, private, program, shapes
from onnx_ci.export.guardlog import GuardLog
from onnx_ci.export.options import Options
from onnx_ci.export.places import Places
from onnx_ci.export.types import Call, Declared, DeclaredInput, Leaf
from onnx_ci.records.model import DimSpec

pytestmark = pytest.mark.torch
HERE = Path(__file__)
PLACES = Places(HERE.parent, HERE.parent)


class Above(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] > 4 else x + 1


class Loop(nn.Module):
    def forward(self, x):
        return torch.stack([x[at] * (at + 1) for at in range(x.shape[0])])


class Sum(nn.Module):
    def forward(self, x, y):
        return x + y


class Halves(nn.Module):
    def forward(self, x):
        return nn.functional.interpolate(x, size=(int(x.shape[2] * 0.5), 6))


class Pairs(nn.Module):
    def forward(self, x):
        return x.view(2, -1)


class Windows(nn.Module):
    def forward(self, x):
        b, h, w, c = x.shape
        return x.view(b, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0]


class SumOfTwoRows(nn.Module):
    def forward(self, x, y):
        return torch.cat((x, y), 1) * torch.ones(2, 1)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, padding=1)

    def forward(self, x):
        return nn.functional.interpolate(nn.functional.max_pool2d(self.conv(x), 2), size=x.shape[-2:])


def read(module, axes, *tensors, **dims):
    """Captures with the declared axes of each parameter, and reads it back."""
    names = ["x", "y"][: len(tensors)]
    made = {name: Dim(name, **{k: v for k, v in {"min": s.min, "max": s.max}.items() if v}) for name, s in dims.items()}
    tree = {
        name: {at: made[axis] for at, axis in enumerate(row) if isinstance(axis, str)}
        for name, row in zip(names, axes, strict=True)
    }
    declared = Declared([DeclaredInput(n, row, "float32") for n, row in zip(names, axes, strict=True)], dims)
    log = GuardLog()
    captured = capture.capture(module.eval(), Call(tensors, {}), tree, log, PLACES)
    leaves = [Leaf(name, name, tensor) for name, tensor in zip(names, tensors, strict=True)]
    reading = shapes.read(captured.program, leaves, declared, log, "models.m")
    left = guards.restrictions(private.deferred_asserts(captured.program), reading, declared, log)
    return captured, reading, left, declared


def line_of(text):
    return next(at for at, line in enumerate(HERE.read_text().splitlines(), 1) if text in line)


def test_a_branch_on_a_size_is_a_narrowed_range_at_its_line():
    captured, reading, _, _ = read(Above(), [["b", 4]], torch.ones(3, 4), b=DimSpec(min=1, max=32))
    (found,) = reading.findings
    assert captured.strategy == "own+refined"
    assert (found.rule, found.status, found.subject) == ("contract.range", "fail", "b")
    assert "declared 1..32" in found.message
    assert "1..4" in found.message
    assert (found.file, found.line) == (HERE.name, line_of("x.shape[0] > 4"))
    assert reading.narrowed == {"b": "b <= 4"}


def test_a_refinement_never_widens_what_was_declared():
    _, reading, _, _ = read(Above(), [["b", 4]], torch.ones(3, 4), b=DimSpec(min=2, max=32))
    assert reading.captured["b"] == shapes.Range(2, 4)


def test_a_bound_on_a_dim_without_a_declared_range_is_its_range():
    _, reading, _, _ = read(Above(), [["b", 4]], torch.ones(3, 4), b=DimSpec())
    assert reading.findings == []
    assert reading.captured["b"].most == 4


def test_a_loop_over_the_batch_freezes_it():
    _, reading, _, _ = read(Loop(), [["b", 4]], torch.ones(2, 4), b=DimSpec())
    (found,) = reading.findings
    assert (found.rule, found.status) == ("contract.static-dim", "fail")
    assert "froze it to 2" in found.message
    assert found.line == line_of("for at in range(x.shape[0])")


def test_a_guard_that_two_axes_of_one_dim_are_equal_is_no_cause():
    axes = [["b", 4], ["b", 4]]
    _, reading, _, _ = read(SumOfTwoRows(), axes, torch.ones(2, 4), torch.ones(2, 4), b=DimSpec(min=1, max=8))
    (found,) = reading.findings
    assert found.rule == "contract.static-dim"
    assert "b == b" not in found.message
    assert "froze it to 2 because of b == 2" in found.message
    assert found.line == line_of("torch.ones(2, 1)")


def test_two_dims_that_must_be_equal_are_tied():
    axes = [["b", 4], ["c", 4]]
    _, reading, _, _ = read(Sum(), axes, torch.ones(3, 4), torch.ones(3, 4), b=DimSpec(), c=DimSpec())
    (found,) = reading.findings
    assert (found.rule, found.status, found.subject) == ("contract.tied-dim", "fail", "c")


def test_a_size_baked_into_the_graph_is_a_restriction_at_its_line():
    axes = [[1, 2, "h", "w"]]
    ranges = {"h": DimSpec(min=4, max=64), "w": DimSpec(min=4, max=64)}
    _, reading, (left,), _ = read(Halves(), axes, torch.ones(1, 2, 16, 12), **ranges)
    assert reading.findings == []
    assert left.text == "h // 2 == 8"
    assert left.dims == ["h"]
    assert {"h": 18} in left.excluded
    assert {"h": 17} not in left.excluded
    assert left.place is not None
    assert left.place.line == line_of("int(x.shape[2] * 0.5)")


def test_a_restriction_to_multiples_is_known_as_one():
    _, reading, (left, *_), declared = read(Pairs(), [["b", 3]], torch.ones(4, 3), b=DimSpec())
    assert guards.steps(left, reading, declared) == {"b": 2}
    assert guards.bound(left, reading, declared) is None
    assert left.allows({"b": 6})
    assert not left.allows({"b": 7})


def test_each_dim_of_a_window_is_known_as_a_multiple():
    axes = [["b", "h", "w", 3]]
    ranges = {"b": DimSpec(), "h": DimSpec(), "w": DimSpec()}
    _, reading, left, declared = read(Windows(), axes, torch.ones(2, 16, 24, 3), **ranges)
    found = [guards.steps(one, reading, declared) for one in left]
    assert {"h": 4, "w": 4} in found


def test_multiples_that_are_declared_are_no_restriction():
    _, _, left, _ = read(Pairs(), [["b", 3]], torch.ones(4, 3), b=DimSpec(min=2, max=32, multiple_of=2))
    assert left == []


def test_recurrent_layers_stay_dynamic_however_many_are_captured():
    for _ in range(2):
        _, reading, left, _ = read(
            Recurrent(), [["b", "t", 3]], torch.ones(2, 6, 3), b=DimSpec(min=1, max=8), t=DimSpec(min=1, max=9)
        )
        assert reading.findings == []
        assert left == []  # only a size of 1 is set apart
        assert reading.captured["t"] == shapes.Range(1, 9)


@pytest.mark.parametrize("size", [1, 2])
def test_a_healthy_model_is_left_in_peace(size):
    ranges = {"b": DimSpec(min=1, max=8), "h": DimSpec(min=4, max=64), "w": DimSpec(min=4, max=64)}
    captured, reading, left, _ = read(Plain(), [["b", 2, "h", "w"]], torch.ones(size, 2, 16, 12), **ranges)
    assert captured.strategy == "own"
    assert (reading.findings, left, reading.narrowed) == ([], [], {})
    assert reading.symbols.keys() == {symbol for symbol in reading.symbols if str(symbol).startswith("s")}


@pytest.mark.parametrize(
    "name",
    [
        "torch.onnx._internal.exporter._capture_strategies:_patch_dynamo_unsupported_functions",
        "torch.onnx._internal.exporter._capture_strategies:_patch_dynamic_shape_rnn_decompositions",
        "torch.fx.experimental._config:backed_size_oblivious",
        "torch.fx.experimental._config:patch",
        "torch._dynamo.exc:UserError",
        "torch._guards:TracingContext.extract_stack",
        "torch.fx.traceback:get_current_meta",
        "torch.export.dynamic_shapes:refine_dynamic_shapes_from_suggested_fixes",
        "torch.fx.experimental.symbolic_shapes:ShapeEnv",
    ],
)
def test_the_private_name_is_still_there(name):
    module, _, attribute = name.partition(":")
    value = importlib.import_module(module)
    for part in attribute.split("."):
        value = getattr(value, part)


def test_the_dispatch_caches_are_still_where_they_are_cleared():
    assert hasattr(torch.ops.aten.gru.input, "_dispatch_cache")
    assert hasattr(torch.ops.aten.lstm.input, "_dispatch_cache")


def test_the_guard_logger_is_heard_and_left_as_it_was():
    logger = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    before = (logger.level, logger.propagate, list(logger.handlers))
    log = GuardLog()
    capture.capture(Above(), Call((torch.ones(3, 4),), {}), {"x": {0: Dim("b")}}, log, PLACES)
    assert "L['x'].size()[0]" in log.symbols.values()
    assert any("<= 4" in guard.text for guard in log.guards)
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_where_torch_trips_over_its_advice_the_declared_range_is_captured_all_the_same():
    class Blocks(nn.Module):
        def forward(self, x):
            x = nn.functional.pad(x, (0, -x.shape[-1] % 4))
            return x.reshape(3, x.shape[-1] // 4, 4).amax(-1)

    log = GuardLog()
    tree = {"x": {1: Dim("n", min=4, max=14)}}
    captured = capture.capture(Blocks(), Call((torch.ones(3, 14),), {}), tree, log, PLACES)
    (held,) = captured.program.range_constraints.values()
    assert (held.lower, held.upper) == (4, 14)
    assert log.violations == []


def test_a_private_name_that_is_gone_is_missed(monkeypatch):
    strategies = importlib.import_module("torch.onnx._internal.exporter._capture_strategies")
    monkeypatch.delattr(strategies, "_patch_dynamic_shape_rnn_decompositions")
    assert "_patch_dynamic_shape_rnn_decompositions" in private.missing_name()


def test_a_translation_is_parsed_once_and_only_inside():
    from onnxscript import values

    def add(self: FLOAT, other: FLOAT) -> FLOAT:
        return op.Add(self, other)

    translation = values.TracedOnnxFunction(values.Opset("here", 1), add)
    before = vars(values.TracedOnnxFunction)["function_ir"].fget
    with private.parsed_once():
        first = translation.function_ir
        assert translation.function_ir is first
        assert first.name == "add"
    assert vars(values.TracedOnnxFunction)["function_ir"].fget is before


def test_the_public_call_captures_and_translates():
    tree = {"x": {0: Dim("b", min=1, max=32)}}
    call, log = Call((torch.ones(3, 4),), {}), GuardLog()
    captured = capture.capture(Above(), call, tree, log, PLACES, lambda: "a name is gone")
    assert (captured.strategy, captured.missing) == ("public", "a name is gone")
    declared = Declared([DeclaredInput("x", ["b", 4], "float32")], {"b": DimSpec(min=1, max=32)})
    reading = shapes.read(captured.program, [Leaf("x", "x", torch.ones(3, 4))], declared, log, "models.m")
    assert [one.rule for one in reading.findings] == ["contract.range"]
    model = program.translate(captured, Options("dynamo", None, None), {}).model
    assert len(model.graph.inputs) == 1


def test_an_error_of_the_module_comes_out_unwrapped():
    class Broken(nn.Module):
        def forward(self, x):
            raise KeyError("no such weight")

    with pytest.raises(KeyError, match="no such weight"):
        capture.capture(Broken(), Call((torch.ones(2),), {}), None, GuardLog(), PLACES)
