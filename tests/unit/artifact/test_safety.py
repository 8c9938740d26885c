from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_ci.artifact.safety import all_tensors, external_data_problems, external_files


def external(name: str = "w", location: str = "model.onnx.data", **entries: str) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def model(*tensors: TensorProto) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    node = helper.make_node("Identity", ["x"], ["y"])
    return helper.make_model(helper.make_graph([node], "g", [x], [y], list(tensors)))


def saved(folder: Path, made: onnx.ModelProto, data: bytes = b"\0" * 16) -> Path:
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    (folder / "model.onnx.data").write_bytes(data)
    return folder / "model.onnx"


def test_weights_beside_the_model_are_fine(tmp_path: Path) -> None:
    path = saved(tmp_path, model(external(offset="8", length="8"), external("v")))
    assert external_data_problems(path) == []
    assert external_files(onnx.load(str(path), load_external_data=False)) == ["model.onnx.data"]


def test_weights_in_a_folder_below_are_fine(tmp_path: Path) -> None:
    path = saved(tmp_path, model(external(location="weights/a.bin")))
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "a.bin").write_bytes(b"\0" * 8)
    assert external_data_problems(path) == []


def test_as_onnx_saves_it(tmp_path: Path) -> None:
    made = model(numpy_helper.from_array(np.ones(2000, np.float32), "w"))
    onnx.save(made, str(tmp_path / "model.onnx"), save_as_external_data=True, location="w.bin")
    assert external_data_problems(tmp_path / "model.onnx") == []


def test_a_model_without_external_data_is_fine(tmp_path: Path) -> None:
    assert external_data_problems(saved(tmp_path, model(numpy_helper.from_array(np.ones(2), "w")))) == []


@pytest.mark.parametrize("offset", ["0", "16"])
def test_exactly_to_the_end_is_inside(tmp_path: Path, offset: str) -> None:
    length = str(16 - int(offset))
    assert external_data_problems(saved(tmp_path, model(external(offset=offset, length=length)))) == []


def test_missing_weights_are_named(tmp_path: Path) -> None:
    path = saved(tmp_path, model(external(location="left_behind.bin")))
    assert external_data_problems(path) == ["left_behind.bin is missing: the weights of w and others lie in it"]


def test_tensors_are_found_wherever_they_hide(tmp_path: Path) -> None:
    def tensor(name: str) -> TensorProto:
        return external(name, location=f"{name}.bin")

    made = model(tensor("initializer"))
    inner = helper.make_graph([helper.make_node("Constant", [], ["c"], value=tensor("subgraph_constant"))], "b", [], [])
    inner.initializer.append(tensor("subgraph_initializer"))
    made.graph.node.append(helper.make_node("If", ["x"], ["z"], then_branch=inner, else_branch=inner))
    made.graph.node.append(helper.make_node("Constant", [], ["k"], value=tensor("constant")))
    many = made.graph.node.add(op_type="Own", domain="d")
    many.attribute.add(name="list", type=onnx.AttributeProto.TENSORS).tensors.append(tensor("in_a_list"))
    sparse = made.graph.sparse_initializer.add()
    sparse.values.CopyFrom(tensor("sparse_values"))
    sparse.indices.CopyFrom(tensor("sparse_indices"))
    one = many.attribute.add(name="sparse", type=onnx.AttributeProto.SPARSE_TENSOR)
    one.sparse_tensor.values.CopyFrom(tensor("sparse_attribute"))
    function = made.functions.add(name="f", domain="d")
    function.node.append(helper.make_node("Constant", [], ["c"], value=tensor("function_constant")))
    default = function.attribute_proto.add(name="t", type=onnx.AttributeProto.TENSOR)
    default.t.CopyFrom(tensor("function_default"))
    training = made.training_info.add()
    training.algorithm.initializer.append(tensor("training"))
    training.initialization.initializer.append(tensor("training_start"))

    wanted = {
        "initializer", "subgraph_constant", "subgraph_initializer", "constant", "in_a_list", "sparse_values",
        "sparse_indices", "sparse_attribute", "function_constant", "function_default", "training", "training_start",
    }  # fmt: skip
    assert {one.name for one in all_tensors(made)} - {""} == wanted
    problems = external_data_problems(saved(tmp_path, made))
    assert {problem.partition(".bin")[0] for problem in problems} == wanted
