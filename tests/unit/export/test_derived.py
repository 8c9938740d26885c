"""Dims that follow from others: found in a capture, put in the shapes, told."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from onnx_ci.export import arguments, derived, graph
from onnx_ci.export.options import Options
from onnx_ci.export.places import Places
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import Declared, DeclaredInput, RunCase
from onnx_ci.records import expression
from onnx_ci.records.contract import TensorContract
from onnx_ci.records.model import DimSpec, ModelSpec

AXES = {"x": ["b", "t"], "past": ["b", "p"], "mask": ["b", "total"]}
RANGES = {"b": DimSpec(min=1, max=4), "t": DimSpec(min=1, max=8), "p": DimSpec(min=1, max=16)}
INPUTS = {"x": torch.rand(2, 3), "past": torch.rand(2, 5), "mask": torch.ones(2, 8)}


class Masked(nn.Module):
    def forward(self, x, past, mask):
        return torch.cat((past, x), 1) * mask


class Lenient(nn.Module):
    def forward(self, x, past, mask):
        joined = torch.cat((past, x), 1)
        return joined * mask if mask.shape[1] == joined.shape[1] else joined


class Bounded(nn.Module):
    def forward(self, x, past, mask):
        joined = torch.cat((past, x), 1)
        return joined * mask if mask.shape[1] < 20 else joined[:, :4] * mask[:, :4]


def built(module, **total):
    declared = Declared(
        [DeclaredInput(path, list(axes), "float32") for path, axes in AXES.items()],
        {**RANGES, "total": DimSpec(**total)},
    )
    call = arguments.bind(module, INPUTS)
    subject = Subject(
        spec=ModelSpec(name="m", entrypoint="model.py:build"),
        module=module.eval(),
        example=INPUTS,
        call=call,
        leaves=arguments.leaves(module, INPUTS),
        eager=arguments.call(module, call),
        declared=declared,
        options=Options("dynamo", None, None),
        short=False,
        places=Places.of(Path(__file__).parent),
    )
    made = graph.build(subject, lambda _: nullcontext())
    assert isinstance(made, Graph)
    return subject, made


def is_the_sum(text: object) -> bool:
    return isinstance(text, str) and expression.parse(text)({"p": 5, "t": 3}) == 8 and text.count("+") == 1


@pytest.mark.parametrize("total", [{}, {"min": 2, "max": 24}])
def test_a_mask_over_past_and_new_has_their_sum(total):
    _, made = built(Masked(), **total)
    assert list(made.derived) == ["total"]
    assert is_the_sum(made.derived["total"])
    assert made.restrictions == []
    (told,) = made.findings
    assert (told.rule, told.status, told.subject) == ("contract.guard", "pass", "total")
    shapes = [made.model.graph.inputs[2].shape, made.model.graph.outputs[0].shape]
    assert all(shape is not None and is_the_sum(str(shape[1])) for shape in shapes)


def test_a_range_that_the_sum_contradicts_is_no_sum_and_the_advice_writes_the_shape():
    subject, made = built(Masked(), min=2, max=40)
    assert made.derived == {}
    (left,) = made.restrictions
    advice = derived.advice(derived.isolated(left.condition, left.symbols), subject)
    assert "total is always" in advice
    assert 'inputs.mask.shape = ["b", "' in advice


def test_an_equality_that_the_module_does_not_ask_for_is_left_to_be_judged():
    _, made = built(Lenient())
    assert made.derived == {}
    assert [left.dims for left in made.restrictions] == [["p", "t", "total"]]


def test_a_bound_on_a_sum_is_a_restriction_of_its_dims():
    _, made = built(Bounded())
    assert list(made.derived) == ["total"]
    assert {tuple(left.dims) for left in made.restrictions} == {("p", "t")}
    assert all(not left.allows({"p": 16, "t": 8}) and left.allows({"p": 5, "t": 3}) for left in made.restrictions)


def test_the_sum_takes_the_place_of_the_dim_in_shapes_and_cases():
    declared = Declared([DeclaredInput(path, list(axes), "float32") for path, axes in AXES.items()], dict(RANGES))
    again = derived.substituted(declared, {"total": "p + t"})
    assert again.inputs[2].axes == ["b", "p + t"]
    case = RunCase("a", "user", "given", {**INPUTS, "mask": torch.ones(2, 9)}, {"b": 2, "total": 9})
    measured = derived.remeasured(case, again)
    assert measured.dims == {"b": 2, "t": 3, "p": 5}
    assert measured.problems == ["axis 1 of mask is 9, which is no p + t (p 5, t 3)"]
    assert measured.why == "given; but axis 1 of mask is 9, which is no p + t (p 5, t 3)"


def test_a_later_export_reads_the_sums_from_the_contract():
    declared = Declared([DeclaredInput(path, list(axes), "float32") for path, axes in AXES.items()], dict(RANGES))
    shapes = {**AXES, "mask": ["b", "p + t"]}
    inputs = [
        TensorContract(name=path, dtype="float32", shape=list(axes), source=path) for path, axes in shapes.items()
    ]
    assert derived.promised(SimpleNamespace(inputs=inputs), declared) == {"total": "p + t"}


def test_the_ends_of_a_sum_are_those_of_its_dims():
    declared = Declared([], dict(RANGES))
    assert derived.ends("p + 2*t", declared) == (3, 32)
    assert derived.ends("p + other", declared) == (2, None)
