"""What comes from what in a graph, and parts of it that run alone."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_ci.divergence.dataflow import Dataflow, NotExtracted, with_outputs
from onnx_ci.divergence.session import CpuSession, inner_values

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
W = np.arange(9, dtype=np.float32).reshape(3, 3)


def graph_of(nodes, *, weights=(), outputs=("y",)):
    floats = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])
    graph = helper.make_graph(nodes, "g", [given], floats, [onnx.numpy_helper.from_array(v, n) for n, v in weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


@pytest.fixture
def model():
    return graph_of(
        [
            helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
            helper.make_node("Relu", ["a"], ["b"], name="second"),
            helper.make_node("Exp", ["b"], ["c"], name="third"),
            helper.make_node("Add", ["c", "a"], ["y"], name="last"),
        ],
        weights=[("w", W)],
    )


def test_the_nearest_known_values_are_the_parents(model):
    assert Dataflow(model).parents(["a", "c", "y"]) == {"a": [], "c": ["a"], "y": ["c", "a"]}


def test_a_region_ends_at_known_values(model):
    flow = Dataflow(model)
    region = flow.region("y", {"a", "y"})
    assert ([node.name for node in region.nodes], region.inputs) == (["second", "third", "last"], ["a"])
    assert flow.region("y", ()).inputs == ["x"]


def test_a_part_gives_what_the_whole_gives(model, tmp_path):
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0, location="m.data")
    model = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    flow = Dataflow(model)

    def opened(raw):
        return CpuSession(raw, folder=tmp_path, optimized=False)

    whole = inner_values(model, opened, {"x": X}, ["a", "b", "y"])
    assert [item.name for item in model.graph.output] == ["y"]
    part = flow.submodel(flow.region("b", {"b"}), {"x": X}, whole["b"], tmp_path)
    onnx.checker.check_model(part, full_check=True)
    np.testing.assert_array_equal(CpuSession(part.SerializeToString()).run({"x": X})["b"], whole["b"])


def test_what_a_branch_takes_from_around_it_comes_along(tmp_path):
    branch = [
        helper.make_graph(
            [helper.make_node(op, ["a"], [f"in_{op}"])], op, [], [helper.make_empty_tensor_value_info(f"in_{op}")]
        )
        for op in ("Neg", "Abs")
    ]
    model = graph_of(
        [
            helper.make_node("Relu", ["x"], ["a"]),
            helper.make_node("Constant", [], ["yes"], value=onnx.numpy_helper.from_array(np.array(True))),
            helper.make_node("If", ["yes"], ["y"], then_branch=branch[0], else_branch=branch[1]),
        ]
    )
    flow = Dataflow(model)
    assert flow.parents(["a", "y"])["y"] == ["a"]
    region = flow.region("y", {"a"})
    assert region.inputs == ["a"]
    part = flow.submodel(region, {"a": X}, X, tmp_path)
    np.testing.assert_array_equal(CpuSession(part.SerializeToString()).run({"a": X})["y"], -X)


def test_what_is_no_tensor_can_not_stand_alone(model, tmp_path):
    flow = Dataflow(model)
    with pytest.raises(NotExtracted):
        flow.submodel(flow.region("b", ()), {"x": [X]}, X, tmp_path)


def test_outputs_are_added_once(model):
    added = onnx.load_from_string(with_outputs(model, ["a", "y"]))
    assert [item.name for item in added.graph.output] == ["y", "a"]
