"""Each kind of fault changes the graph where it says so, and leaves a file that can be read."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from benchmarks.mutation import choose
from benchmarks.mutation.mutant import Mutant, attribute
from benchmarks.mutation.mutators import find
from onnx import ModelProto, TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def made(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], *, two: bool = False) -> ModelProto:
    outputs = [helper.make_tensor_value_info("y", FLOAT, ["n", "c", "h", "w"])]
    if two:
        outputs.append(helper.make_tensor_value_info("z", FLOAT, ["n", "c", "h", "w"]))
    graph = helper.make_graph(
        nodes,
        "main",
        [helper.make_tensor_value_info("x", FLOAT, ["n", "c", "h", "w"])],
        outputs,
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model


def node(operator: str, inputs: str, output: str = "y", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), [output], name=f"the_{operator.lower()}", **attributes)


def of(model: ModelProto, kind: str) -> list[Mutant]:
    return [mutant for mutant in find(model) if mutant.kind == kind]


POOL = made([node("MaxPool", "x", kernel_shape=[2, 3], strides=[1, 2], pads=[0, 1, 0, 1])], {})
CONV = made(
    [node("Conv", "x w", pads=[1, 1, 1, 1])], {"w": np.linspace(-1, 1, 36, dtype=np.float32).reshape(2, 2, 3, 3)}
)
NORM = made([node("LayerNormalization", "x scale", axis=-1, epsilon=1e-6)], {"scale": np.ones(4, np.float32)})
GELU = made([node("Gelu", "x")], {})
SCALED = made([node("Mul", "x factor")], {"factor": np.array(0.3, np.float32)})
GUARDED = made([node("Add", "x eps")], {"eps": np.array(1e-5, np.float32)})
GATHERED = made([node("Gather", "x at", axis=2)], {"at": np.array([1, 2])})
SLICED = made([node("Slice", "x from to along")], {"from": np.array([0]), "to": np.array([3]), "along": np.array([3])})
TURNED = made([node("Transpose", "x", perm=[0, 2, 1, 3])], {})
SUMMED = made([node("ReduceSum", "x along")], {"along": np.array([-1])})
TWO = made([node("Relu", "x"), node("Tanh", "x", "z")], {}, two=True)

EVERY = [
    (POOL, "pool-kernel", 4),
    (POOL, "stride", 3),
    (POOL, "dilation", 2),
    (POOL, "pads", 2),
    (CONV, "stride", 2),
    (CONV, "pads", 4),
    (CONV, "weight", 1),
    (CONV, "element", 1),
    (CONV, "half", 1),
    (NORM, "epsilon", 1),
    (NORM, "axis", 2),
    (NORM, "bypass", 1),
    (GELU, "gelu", 1),
    (SCALED, "scalar", 1),
    (SCALED, "narrowed", 1),
    (GUARDED, "epsilon", 1),
    (GATHERED, "gather-index", 2),
    (SLICED, "slice", 4),
    (TURNED, "permutation", 3),
    (SUMMED, "axis", 2),
    (TWO, "bypass", 2),
    (TWO, "output-dropped", 2),
    (TWO, "output-swapped", 1),
    (TWO, "output-dtype", 2),
]


@pytest.mark.parametrize(("model", "kind", "count"), EVERY, ids=[f"{kind}-{count}" for _, kind, count in EVERY])
def test_every_place_of_a_kind_is_found_and_its_fault_changes_the_file(model: ModelProto, kind: str, count: int):
    before = model.SerializeToString()
    mutants = of(model, kind)
    assert len(mutants) == count
    faulty = [mutant.of(model) for mutant in mutants]
    assert model.SerializeToString() == before
    assert len({one.SerializeToString() for one in faulty} | {before}) == count + 1
    for one in faulty:
        onnx.checker.check_model(one)


def test_what_is_not_there_gives_no_mutant():
    assert {mutant.kind for mutant in find(GELU)} == {"gelu", "bypass", "narrowed", "output-dtype"}
    halves = made([node("Mul", "x w")], {"w": np.array([0.5, 0.25, 1, 2], np.float32)})
    assert of(halves, "half") == []


def test_a_mutant_names_the_node_and_what_changed():
    (mutant,) = of(NORM, "epsilon")
    assert (mutant.node, mutant.operator) == ("the_layernormalization", "LayerNormalization")
    assert mutant.what.startswith("epsilon 1e-06 →")
    assert attribute(mutant.of(NORM).graph.node[0], "epsilon") == pytest.approx(1e-5)


def test_a_constant_node_is_changed_like_an_initializer():
    value = numpy_helper.from_array(np.array(2.0, np.float32))
    model = made([helper.make_node("Constant", [], ["two"], name="two", value=value), node("Mul", "x two")], {})
    (mutant,) = of(model, "scalar")
    changed = mutant.of(model).graph.node[0]
    assert numpy_helper.to_array(attribute(changed, "value")) == pytest.approx(2.02)


def test_swapped_outputs_keep_their_names_and_order():
    (mutant,) = of(TWO, "output-swapped")
    faulty = mutant.of(TWO).graph
    assert [one.name for one in faulty.output] == ["y", "z"]
    assert {one.output[0]: one.op_type for one in faulty.node} == {"z": "Relu", "y": "Tanh"}


def test_what_is_narrowed_is_half_in_between():
    (mutant,) = of(SCALED, "narrowed")
    inferred = onnx.shape_inference.infer_shapes(mutant.of(SCALED), strict_mode=True)
    assert [one.type.tensor_type.elem_type for one in inferred.graph.value_info] == [FLOAT, TensorProto.FLOAT16]
    assert inferred.graph.output[0].type.tensor_type.elem_type == FLOAT


def test_each_kind_has_its_turn_and_a_seed_draws_the_same():
    first = choose.chosen(CONV, 5, seed=1)
    assert len({mutant.kind for mutant in first}) == 5
    assert [one.what for one in first] == [one.what for one in choose.chosen(CONV, 5, seed=1)]
    assert len(choose.chosen(CONV, 1000, seed=1)) == len(find(CONV))
