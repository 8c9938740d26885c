"""Random and training operators are found in a file; those of inference are not."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_ci.export import operators
from onnx_ci.records.source_map import Origin


def graph(*nodes, constants=()):
    made = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
        [numpy_helper.from_array(value, name) for name, value in constants],
    )
    return ir.serde.deserialize_model(helper.make_model(made, opset_imports=[onnx.OperatorSetIdProto(version=20)]))


def dropout(training):
    constants = [("ratio", np.float32(0.5)), ("training", np.bool_(training))]
    return graph(helper.make_node("Dropout", ["x", "ratio", "training"], ["y"]), constants=constants)


@pytest.mark.parametrize("op", ["RandomNormalLike", "RandomUniformLike", "Bernoulli"])
def test_a_random_operator_is_found_at_its_line(op):
    origin = Origin(node="n", op=op, file="model.py", line=7)
    (found,) = operators.findings(graph(helper.make_node(op, ["x"], ["y"], name="n")), {"y": origin})
    assert (found.rule, found.status, found.subject) == ("export.random-operator", "fail", op)
    assert (found.file, found.line) == ("model.py", 7)


def test_dropout_in_training_mode_is_found():
    (found,) = operators.findings(dropout(True), {})
    assert (found.rule, found.subject) == ("export.training-operator", "Dropout")


def test_batch_norm_in_training_mode_is_found():
    names = ["x", "s", "b", "m", "v"]
    node = helper.make_node("BatchNormalization", names, ["y", "rm", "rv"], training_mode=1)
    constants = [(name, np.ones(3, np.float32)) for name in names[1:]]
    (found,) = operators.findings(graph(node, constants=constants), {})
    assert found.subject == "BatchNormalization"


def test_inference_is_left_in_peace():
    assert operators.findings(dropout(False), {}) == []
    assert operators.findings(graph(helper.make_node("Dropout", ["x"], ["y"])), {}) == []
    assert operators.findings(graph(helper.make_node("Relu", ["x"], ["y"])), {}) == []
