"""What the exporter's optimizer took for nothing: named with its line, and nothing where it did no harm."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
import torch
from tests.unit.export.subjects import Does, subject_of

from onnx_ci.export import blame, graph
from onnx_ci.export.options import Options

pytestmark = pytest.mark.torch


def built(function, *, optimize=True):
    subject = subject_of(Does(function), ["batch", 4], {"batch": (1, 4)}, {"batch": 2})
    subject = replace(subject, options=Options("dynamo", None, None, optimize=optimize))
    made = graph.build(subject, lambda _: contextlib.nullcontext())
    assert not isinstance(made, list), made
    return made


def everything(x):
    total = x.abs().sum(-1, keepdim=True)
    shares = x / (total + 1e-8)
    return shares, 1 / (x.var(-1) + 1e-12), (x - 5e-9) * 2, x * 1.000001, (total + 0.0) / 1.0, (total + 1e-6).log()


@pytest.fixture(scope="module")
def lost():
    return built(everything)


def test_each_operation_that_is_gone_and_had_an_effect_is_found(lost):
    found = sorted((one.rule, one.text) for one in lost.lost.values())
    assert found == [("add_0", "+ 1e-08"), ("add_0", "+ 1e-12"), ("mul_by_1", "* 1.000001"), ("sub_0", "- 5e-09")]
    assert all(one.line for one in lost.lost.values() if one.file)


def test_it_is_named_above_what_goes_wrong_though_others_are_gone_in_between(lost):
    operators = {node.op_type: node.outputs[0].name for node in lost.model.graph}
    above = {op: blame._above(lost, operators[op]) for op in ("Div", "Reciprocal", "Log", "Abs") if op in operators}
    assert {op: one.text for op, one in above.items() if one is not None}["Reciprocal"] == "+ 1e-12"
    assert above["Log"] is above["Abs"] is None


def test_what_was_not_optimized_has_lost_nothing():
    assert built(everything, optimize=False).lost == {}
    assert built(lambda x: (x + 0.0) / torch.ones(()) + 1e-6).lost == {}
