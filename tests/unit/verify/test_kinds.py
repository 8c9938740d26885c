"""Outputs of every kind that ONNX knows, judged by the layers: in real sessions, each right and wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_ci.artifact.tensors import Value, dtype_name
from onnx_ci.records.contract import DimContract, TensorContract
from onnx_ci.records.messages import VerifyRequest
from onnx_ci.records.result import Result
from onnx_ci.verify import signature
from onnx_ci.verify.job import verify

from .artifacts import CPU, MadeCase, contract_of, linear_job, linear_model, model_of, value, write_artifact

F = np.float32
X = np.array([[1, 2, 3], [4, 5, 7]], F)


def typed(name: str, kind: onnx.TypeProto) -> onnx.ValueInfoProto:
    return helper.make_value_info(name, kind)


FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
SCALAR = helper.make_tensor_type_proto(TensorProto.FLOAT, [])


def judged(
    folder: Path, nodes: list[onnx.NodeProto], output: onnx.ValueInfoProto, expected: Value, **more: Any
) -> Result:
    """The verdict on a model of x ([batch, 3], float32) whose output is called y."""
    oracle = more.pop("oracle", None)
    model = model_of(nodes, [value("x", TensorProto.FLOAT, ["batch", 3])], [output], domains={"ai.onnx.ml": 3}, **more)
    job = linear_job()
    whole = contract_of(linear_model(), job)
    y = TensorContract(name="y", dtype=signature.read(model).outputs[0].dtype, shape=None, source="y")
    dims = {"batch": DimContract(min=1, max=8, declared=True)}
    contract = contract_of(linear_model(), job, inputs=whole.inputs, outputs=[y], dims=dims)
    made = MadeCase("one", {"x": X}, {"y": expected}, None if oracle is None else {"y": oracle}, dims={"batch": 2})
    artifact = write_artifact(folder, model=model, cases=[made], job=job, contract=contract)
    return verify(VerifyRequest(artifact=str(artifact.folder), target=CPU, job=job), lambda _: None)


def told(result: Result) -> dict[str, str]:
    """What of structure and parity is not as it should be: the message by rule and subject."""
    return {
        f"{one.rule} {one.subject}".strip(): one.message
        for one in result.findings
        if one.stage in ("structure", "parity") and one.status in ("fail", "error", "warn")
    }


@dataclass(frozen=True)
class Kind:
    """How to make an output of some kind, what it is, and what is wrong instead: the finding it must give."""

    nodes: Callable[[], list[onnx.NodeProto]]
    output: Callable[[], onnx.ValueInfoProto]
    right: Any
    wrong: dict[str, Any]
    initializers: tuple[Any, ...] = ()


def zip_map(**labels: Any) -> Callable[[], list[onnx.NodeProto]]:
    return lambda: [helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", **labels)]


def maps(key: int) -> Callable[[], onnx.ValueInfoProto]:
    return lambda: typed("y", helper.make_sequence_type_proto(helper.make_map_type_proto(key, SCALAR)))


def by(*keys: Any, rows: np.ndarray = X) -> list[dict[Any, np.ndarray]]:
    return [{key: np.array(item, rows.dtype) for key, item in zip(keys, row, strict=True)} for row in rows]


OFF = X + np.array([[0, 0, 0], [0, 0, 1]], F)
KINDS = {
    "a sequence": Kind(
        lambda: [helper.make_node("SplitToSequence", ["x"], ["y"], axis=0)],
        lambda: typed("y", helper.make_sequence_type_proto(FLOATS)),
        [X[:1], X[1:]],
        {
            "parity.runtime y[1]": [X[:1], OFF[1:]],
            "parity.structure y": [X[:1], X[1:], X[1:]],
            "parity.shape y[0]": [X[0], X[1:]],
            "parity.dtype y[0]": [X[:1].astype(np.float64), X[1:].astype(np.float64)],
        },
    ),
    "an empty sequence": Kind(
        lambda: [helper.make_node("SequenceEmpty", [], ["y"], dtype=TensorProto.FLOAT)],
        lambda: typed("y", helper.make_sequence_type_proto(FLOATS)),
        [],
        {"parity.structure y": [X]},
    ),
    "maps by number": Kind(
        zip_map(classlabels_int64s=[3, 7, 11]),
        maps(TensorProto.INT64),
        by(3, 7, 11),
        {
            "parity.runtime y[1]": by(3, 7, 11, rows=OFF),
            "parity.structure y[0]": by(3, 7, 12),
            "parity.dtype y[0]": by(3, 7, 11, rows=X.astype(np.float64)),
            "parity.structure y": by(3, 7, 11)[:1],
        },
    ),
    "maps by text": Kind(
        zip_map(classlabels_strings=["cat", "dog", "ü"]),
        maps(TensorProto.STRING),
        by("cat", "dog", "ü"),
        {"parity.runtime y[1]": by("cat", "dog", "ü", rows=OFF), "parity.structure y[0]": by("cat", "dog", "u")},
    ),
    "an optional that holds nothing": Kind(
        lambda: [helper.make_node("Optional", [], ["y"], type=FLOATS)],
        lambda: typed("y", helper.make_optional_type_proto(FLOATS)),
        None,
        {"parity.structure y": X},
    ),
    "an optional that holds a tensor": Kind(
        lambda: [helper.make_node("Optional", ["x"], ["y"])],
        lambda: typed("y", helper.make_optional_type_proto(FLOATS)),
        X,
        {"parity.structure y": None, "parity.runtime y": OFF},
    ),
    "text": Kind(
        lambda: [helper.make_node("Identity", ["words"], ["y"])],
        lambda: value("y", TensorProto.STRING, [2]),
        np.array(["cat", "dög"], object),
        {"parity.exact y": np.array(["cat", "dog"], object), "parity.shape y": np.array(["cat"], object)},
        (("words", TensorProto.STRING, [2], ["cat", "dög"]),),
    ),
    "a scalar": Kind(
        lambda: [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)],
        lambda: value("y", TensorProto.FLOAT, []),
        np.array(22, F),
        {"parity.runtime y": np.array(23, F), "parity.shape y": np.array([22], F)},
    ),
    "a whole number": Kind(
        lambda: [helper.make_node("Size", ["x"], ["y"])],
        lambda: value("y", TensorProto.INT64, []),
        np.array(6),
        {"parity.exact y": np.array(7), "parity.dtype y": np.array(6, np.int32)},
    ),
    "nothing of a known size": Kind(
        lambda: [helper.make_node("Slice", ["x", "at", "at"], ["y"])],
        lambda: value("y", TensorProto.FLOAT, [0, 3]),
        np.zeros((0, 3), F),
        {
            "parity.shape y": np.zeros((0, 2), F),
            "parity.dtype y": np.zeros((0, 3), np.float64),
        },
        (("at", TensorProto.INT64, [1], [0]),),
    ),
    "nothing of a size that the data tell": Kind(
        lambda: [
            helper.make_node("Greater", ["x", "large"], ["found"]),
            helper.make_node("NonZero", ["found"], ["y"]),
        ],
        lambda: value("y", TensorProto.INT64, [2, None]),
        np.zeros((2, 0), np.int64),
        {"parity.shape y": np.zeros((2, 1), np.int64)},
        (("large", TensorProto.FLOAT, [], [99.0]),),
    ),
}
CASES = [(name, rule) for name, kind in KINDS.items() for rule in kind.wrong]


def of(kind: Kind, folder: Path, expected: Any, **more: Any) -> Result:
    constants = [helper.make_tensor(*given) for given in kind.initializers]
    return judged(folder, kind.nodes(), kind.output(), expected, initializers=constants, **more)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_right_passes_and_was_compared(tmp_path: Path, name: str) -> None:
    kind = KINDS[name]
    result = of(kind, tmp_path / "a", kind.right)
    assert told(result) == {}
    rules = {one.rule for one in result.findings if one.status == "pass"}
    assert rules & {"parity.runtime", "parity.exact"}
    assert result.parity


@pytest.mark.parametrize(("name", "rule"), CASES, ids=lambda one: one.replace(" ", "-"))
def test_what_is_wrong_fails_at_its_layer(tmp_path: Path, name: str, rule: str) -> None:
    kind = KINDS[name]
    assert rule in told(of(kind, tmp_path / "a", kind.wrong[rule]))


@pytest.mark.parametrize("name", ["a sequence", "maps by number", "a scalar", "nothing of a known size"])
def test_the_oracle_is_met_in_every_kind(tmp_path: Path, name: str) -> None:
    kind = KINDS[name]

    def wide(given: Any) -> Any:
        if isinstance(given, list):
            return [wide(item) for item in given]
        return {key: wide(one) for key, one in given.items()} if isinstance(given, dict) else given.astype(np.float64)

    result = of(kind, tmp_path / "a", kind.right, oracle=wide(kind.right))
    assert {row.against for row in result.parity} == {"oracle"}
    assert told(result) == {}


def test_a_map_says_where_it_is_wrong(tmp_path: Path) -> None:
    kind = KINDS["maps by text"]
    said = told(of(kind, tmp_path / "a", kind.wrong["parity.structure y[0]"]))
    assert "the map has no key 'u', and 'ü' instead" in said["parity.structure y[0]"]
    said = told(of(kind, tmp_path / "b", kind.wrong["parity.runtime y[1]"]))
    assert "at [2]: expected 8, got 7" in said["parity.runtime y[1]"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ([{1: np.array(1, F)}], "sequence(map(int64,float32))"),
        ([{"a": np.array(1)}], "sequence(map(string,int64))"),
        ([X], "sequence(float32)"),
        ([], "sequence()"),
        (None, "optional"),
    ],
)
def test_the_dtype_has_one_name_wherever_it_is_asked_for(given: Value, name: str) -> None:
    from onnx_ci.numerics import dtypes

    assert dtype_name(given) == dtypes.dtype_name(given) == name
