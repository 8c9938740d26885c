"""Outputs in the order of a TopK with sorted=0 are found by turning that order round."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_ci.artifact import layout, tensors
from onnx_ci.export import unordered
from onnx_ci.records.cases import Case, CaseOutput, OpenOrder

SCORES = np.random.default_rng(0).random((2, 7)).astype(np.float32)
OUTPUTS = {
    "best": TensorProto.FLOAT,
    "at": TensorProto.INT64,
    "box": TensorProto.FLOAT,
    "turned": TensorProto.FLOAT,
    "sum": TensorProto.FLOAT,
    "doubled": TensorProto.FLOAT,
}


@pytest.fixture
def judged(tmp_path):
    def judge(ordered):
        nodes = [
            helper.make_node("Constant", [], ["k"], value_ints=[3]),
            helper.make_node("TopK", ["scores", "k"], ["best", "at"], axis=1, sorted=ordered),
            helper.make_node("Gather", ["table", "at"], ["box"], axis=0),
            helper.make_node("Transpose", ["box"], ["turned"], perm=[2, 0, 1]),
            helper.make_node("ReduceSum", ["best"], ["sum"], keepdims=0),
            helper.make_node("Add", ["scores", "scores"], ["doubled"]),
        ]
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["b", 7])],
            [helper.make_tensor_value_info(name, kind, None) for name, kind in OUTPUTS.items()],
            [onnx.numpy_helper.from_array(np.random.default_rng(1).random((7, 4)).astype(np.float32), "table")],
        )
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), str(tmp_path / layout.MODEL))
        folder = tmp_path / "test_data_set_0"
        tensors.write_values(folder, "input", ["scores"], [SCORES])
        outputs = [CaseOutput(name=name, dtype="float32", shape=[2, 3]) for name in OUTPUTS]
        case = Case(index=0, name="a", origin="user", why="", dims={"b": 2}, outputs=outputs)
        return unordered.judge([case], tmp_path)

    return judge


def test_what_is_in_its_order_is_found_with_its_axis_and_rows(judged):
    (case,), (found,) = judged(0)
    assert case.orders == {
        "best": OpenOrder(node="best", axis=1, rows=[0]),
        "at": OpenOrder(node="best", axis=1, rows=[0]),
        "box": OpenOrder(node="best", axis=1, rows=[0]),
        "turned": OpenOrder(node="best", axis=2, rows=[0, 1]),  # rows do not come first: each place stands for one
    }
    assert (found.rule, found.status) == ("contract.open-order", "warn")


def test_a_topk_that_sorts_leaves_nothing_open(judged):
    (case,), found = judged(1)
    assert (case.orders, found) == ({}, [])
