"""A float narrower than the module's own is told by the place that names it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_ci.records.result import Finding
from onnx_ci.records.source_map import Origin, SourceMap
from onnx_ci.verify import precision

from .artifacts import contract_of, linear_job, linear_model, model_of, value

NARROW = SourceMap(schema_version=1, values={"half": Origin(node="narrow", op="Cast", file="model.py", line=7)})


def casting() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Cast", ["x"], ["half"], name="narrow", to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["half"], ["y"], name="widen", to=TensorProto.FLOAT),
    ]
    return model_of(nodes, [value("x", TensorProto.FLOAT, ["batch", 3])], [value("y", TensorProto.FLOAT, ["batch", 3])])


def stored() -> onnx.ModelProto:
    nodes = [helper.make_node("CastLike", ["weight", "x"], ["wide"]), helper.make_node("Add", ["x", "wide"], ["y"])]
    weight = numpy_helper.from_array(np.ones(3, np.float16), "weight")
    edges = [value("x", TensorProto.FLOAT, ["batch", 3])], [value("y", TensorProto.FLOAT, ["batch", 3])]
    return model_of(nodes, *edges, [weight])


def judged(model: onnx.ModelProto, halves: list[str] | None) -> Finding:
    return precision.judge(model, replace(contract_of(model, linear_job()), halves=halves), NARROW)


def test_a_cast_that_the_module_has_not_is_told_with_its_line():
    found = judged(casting(), [])
    assert (found.status, found.subject, found.file, found.line) == ("fail", "node narrow", "model.py", 7)
    assert "float16" in found.message


def test_a_narrow_weight_is_told():
    assert (judged(stored(), []).status, judged(stored(), []).subject) == ("fail", "weight weight")


@pytest.mark.parametrize(("model", "halves"), [(linear_model(), []), (casting(), ["float16"]), (stored(), ["float16"])])
def test_what_the_module_computes_with_is_healthy(model: onnx.ModelProto, halves: list[str]):
    assert judged(model, halves).status == "pass"


def test_another_narrow_float_is_not_the_same():
    assert judged(casting(), ["bfloat16"]).status == "fail"


def test_nothing_is_judged_where_nothing_was_captured():
    assert judged(casting(), None).status == "skip"
