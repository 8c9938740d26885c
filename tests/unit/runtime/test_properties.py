"""What the validator accepts is inside the contract and runs; what it refuses is outside."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from onnx_ci.records.contract import Contract, DimContract
from onnx_ci.runtime import Validator

from .contracts import contract

DIMS = ("a", "b")
PLAIN = ["a", "b", 0, 1, 2, 5]
STRAIGHT = ["2*a", "a + 1", "3*b - 2", "2*a + b"]
BENT = ["a//2", "max(a, 3)", "a*b", "b % 3"]
DTYPES = ["float32", "int64", "bool"]
MOST = 8


@st.composite
def ranges(draw: st.DrawFn) -> DimContract:
    low = draw(st.integers(0, 4))
    return DimContract(min=low, max=draw(st.integers(low, MOST)), multiple_of=draw(st.sampled_from([1, 1, 1, 2, 3])))


def contracts(axes: list[int | str]) -> st.SearchStrategy[Contract]:
    shape = st.lists(st.sampled_from(axes), min_size=0, max_size=3)
    inputs = st.dictionaries(
        st.sampled_from(["x", "y"]), st.tuples(st.sampled_from(DTYPES), shape), min_size=1, max_size=2
    )
    return st.builds(contract, inputs, st.fixed_dictionaries({name: ranges() for name in DIMS}))


def truth(size: int | str, at: dict[str, int]) -> int:
    """The size of an axis, read by Python itself and not by the grammar of ours."""
    return size if isinstance(size, int) else int(eval(size, {"max": max}, at))


@st.composite
def arrays(draw: st.DrawFn, made: Contract) -> dict[str, Any]:
    """Arrays near the contract: of sizes that fit, with one thing changed in about half of them."""
    at = {name: draw(st.integers(max(dim.min - 1, 0), (dim.max or 0) + 1)) for name, dim in made.dims.items()}
    shapes = {item.name: [max(truth(size, at), 0) for size in item.shape or []] for item in made.inputs}
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(shapes)))
        if shapes[name]:
            place = draw(st.integers(0, len(shapes[name]) - 1))
            shapes[name][place] = draw(st.integers(0, 12))
    dtypes = {item.name: item.dtype for item in made.inputs}
    if draw(st.integers(0, 9)) == 0:
        dtypes[draw(st.sampled_from(sorted(dtypes)))] = draw(st.sampled_from([*DTYPES, "float64", ">f4"]))
    return {name: np.zeros(shape, dtypes[name]) for name, shape in shapes.items()}


@st.composite
def calls(draw: st.DrawFn, axes: list[int | str]) -> tuple[Contract, dict[str, Any]]:
    made = draw(contracts(axes))
    return made, draw(arrays(made))


def inside(made: Contract, inputs: dict[str, Any]) -> bool:
    """Whether some sizes of the dims, each inside its range, give these shapes: by trying them all."""
    for item in made.inputs:
        if inputs[item.name].dtype != np.dtype(item.dtype) or inputs[item.name].ndim != len(item.shape or []):
            return False
    allowed = [
        [size for size in range(dim.min, (dim.max or 0) + 1) if size % dim.multiple_of == 0]
        for dim in (made.dims[name] for name in DIMS)
    ]
    used = {
        name
        for item in made.inputs
        for size in item.shape or []
        if isinstance(size, str)
        for name in DIMS
        if name in size.replace("max", "")
    }
    tried = [sizes if name in used else [0] for name, sizes in zip(DIMS, allowed, strict=True)]
    return any(
        all(
            inputs[item.name].shape
            == tuple(truth(size, dict(zip(DIMS, sizes, strict=True))) for size in item.shape or [])
            for item in made.inputs
        )
        for sizes in itertools.product(*tried)
    )


@settings(deadline=None, max_examples=200)
@given(calls([*PLAIN, "2*a", "a + 1", "3*b - 2"]))
def test_it_accepts_exactly_what_is_inside(call: tuple[Contract, dict[str, Any]]) -> None:
    made, inputs = call
    assert (Validator(made).problems(inputs) == []) == inside(made, inputs)


@settings(deadline=None, max_examples=200)
@given(calls([*PLAIN, *STRAIGHT, *BENT]))
def test_whatever_the_expressions_it_refuses_only_what_is_outside(call: tuple[Contract, dict[str, Any]]) -> None:
    made, inputs = call
    problems = Validator(made).problems(inputs)
    assert problems == [] or not inside(made, inputs)
    assert all(problem.input in inputs and problem.message for problem in problems)


RUNS = contract(
    {"x": ("float32", ["batch", 3, "width"]), "scale": ("float32", ["batch"]), "kind": ("int64", [1])},
    {"batch": DimContract(min=1, max=4), "width": DimContract(min=2, max=9)},
)


@pytest.fixture(scope="module")
def session() -> onnxruntime.InferenceSession:
    """y = x · scale + kind, item by item."""
    nodes = [
        helper.make_node("Unsqueeze", ["scale", "axes"], ["column"]),
        helper.make_node("Mul", ["x", "column"], ["scaled"]),
        helper.make_node("Cast", ["kind"], ["offset"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["scaled", "offset"], ["y"]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, "width"]),
        helper.make_tensor_value_info("scale", TensorProto.FLOAT, ["batch"]),
        helper.make_tensor_value_info("kind", TensorProto.INT64, [1]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3, "width"])]
    axes = helper.make_tensor("axes", TensorProto.INT64, [2], [1, 2])
    graph = helper.make_graph(nodes, "main", inputs, outputs, [axes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def sizes(low: int, high: int, usual: int) -> st.SearchStrategy[int]:
    return st.one_of(st.just(usual), st.integers(low, high))


@settings(deadline=None, max_examples=150)
@given(
    batch=st.integers(1, 4),
    x=st.tuples(sizes(0, 6, 0), sizes(2, 4, 3), sizes(0, 11, 5)),
    scale=sizes(0, 6, 0),
    kind=sizes(0, 2, 1),
    dtypes=st.tuples(
        *(st.sampled_from([usual] * 6 + [other]) for usual, other in (("f4", "f8"), ("f4", "f2"), ("i8", "i4")))
    ),
)
def test_what_it_accepts_runs(
    session: onnxruntime.InferenceSession,
    batch: int,
    x: tuple[int, int, int],
    scale: int,
    kind: int,
    dtypes: tuple[str, str, str],
) -> None:
    inputs = {
        "x": np.ones((x[0] or batch, *x[1:]), dtypes[0]),
        "scale": np.ones(scale or batch, dtypes[1]),
        "kind": np.ones(kind, dtypes[2]),
    }
    problems = Validator(RUNS).problems(inputs)
    if not problems:
        (y,) = session.run(None, inputs)
        assert y.shape == inputs["x"].shape
        assert bool((y == 2).all())
    if any(problem.axis is None or not problem.dim for problem in problems):  # a dtype, or a fixed size
        with pytest.raises(Exception, match=r"Got invalid dimensions|Unexpected input data type"):
            session.run(None, inputs)


def test_the_runtime_itself_lets_a_range_and_a_shared_dim_pass(session: onnxruntime.InferenceSession) -> None:
    """Why the validator is there: the runtime broadcasts what should have been refused."""
    beyond = {"x": np.ones((5, 3, 10), "f4"), "scale": np.ones(1, "f4"), "kind": np.ones(1, "i8")}
    assert session.run(None, beyond)[0].shape == (5, 3, 10)
    assert [problem.dim for problem in Validator(RUNS).problems(beyond)] == ["batch", "width", "batch"]
