"""Sizes outside of the contract are refused, by the runtime or by the validator; the cases are taken by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_ci.records.contract import Contract, DimContract, TensorContract
from onnx_ci.records.result import Finding
from onnx_ci.verify import refusal, validated
from onnx_ci.verify.session import RuntimeFault, Session, open_session

from .artifacts import (
    CPU,
    MadeCase,
    contract_of,
    linear_case,
    linear_job,
    linear_model,
    model_of,
    value,
    write_artifact,
)


def identity(shape: Sequence[int | str | None] | None, kind: int = TensorProto.FLOAT) -> onnx.ModelProto:
    return model_of([helper.make_node("Identity", ["x"], ["y"])], [value("x", kind, shape)], [value("y", kind, None)])


def promised(shape: list[int | str] | None, dtype: str = "float32", **dims: DimContract) -> Contract:
    made = contract_of(linear_model(), linear_job())
    return replace(made, inputs=[TensorContract(name="x", dtype=dtype, shape=shape)], dims=dims)


def judge(tmp_path: Path, model: onnx.ModelProto, contract: Contract) -> list[Finding]:
    onnx.save_model(model, str(tmp_path / "model.onnx"))
    return refusal.judge(model, contract, open_session(tmp_path / "model.onnx", CPU))


def said(found: Sequence[Finding]) -> list[tuple[str, str]]:
    assert {one.rule for one in found} <= {"contract.refusal"}
    return [(one.status, one.message) for one in found]


def test_a_healthy_contract_is_refused_beyond_by_both(tmp_path: Path) -> None:
    dims = {"batch": DimContract(min=2, max=8), "width": DimContract(min=16, max=None, multiple_of=8)}
    found = judge(tmp_path, identity(["batch", 3, "width"]), promised(["batch", 3, "width"], **dims))
    assert said(found) == [
        (
            "pass",
            "the validator for services refuses what lies outside the ranges: batch = 1, 9; width = 15, 17",
        ),
        ("pass", "the runtime refuses another size where the file fixes one: x, axis 1 = 2, 4"),
    ]


def test_a_range_without_ends_has_nothing_outside(tmp_path: Path) -> None:
    assert judge(tmp_path, identity(["n"]), promised(["n"], n=DimContract(min=0, max=None))) == []
    assert judge(tmp_path, identity([]), promised([])) == []


def test_a_file_that_leaves_open_what_the_contract_fixes_warns(tmp_path: Path) -> None:
    for shape in (["n", "channels"], ["n", None], None):
        found = judge(tmp_path, identity(shape), promised(["n", 3], n=DimContract(min=1, max=4)))
        assert said(found)[1:] == [
            (
                "warn",
                "the file leaves x, axis 1 open, which the contract fixes: nothing but the validator refuses other "
                "sizes",
            )
        ]
        assert found[1].subject == "x, axis 1"


class Lax:
    """A runtime that takes whatever it is given."""

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        return dict(feeds)


class Broken:
    """A runtime that fails for a reason of its own."""

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        raise RuntimeFault("memory", "out of memory")


def with_session(session: Any) -> list[Finding]:
    handed: Session | str = session
    return refusal.judge(identity(["n", 3]), promised(["n", 3], n=DimContract(min=1, max=4)), handed)


def test_a_runtime_that_takes_another_size_is_told() -> None:
    assert said(with_session(Lax()))[1] == (
        "warn",
        "the runtime takes x, axis 1 = 2, 4, which file and contract fix otherwise: nothing but the validator "
        "refuses other sizes",
    )


def test_what_could_not_be_tried_is_no_pass() -> None:
    assert said(with_session(Broken()))[1] == ("skip", "2 of 2 fixed sizes could not be tried: out of memory")
    assert said(with_session("it is closed"))[1] == ("skip", "fixed sizes were not tried, since it is closed")


@pytest.mark.parametrize(
    ("model", "contract", "reason"),
    [
        (identity(["n", 3]), promised(["n", 3], dtype="int64"), "names or dtypes of the file are not the contract's"),
        (identity([2, 3]), promised(["n", 3]), "the file fixes other sizes than the contract"),
        (identity(["n", 4]), promised(["n", 3]), "the file fixes other sizes than the contract"),
        (identity(["n", 3, 3]), promised(["n", 3]), "the file fixes other sizes than the contract"),
        (identity([9000, 9000]), promised([9000, 9000]), "even the smallest inputs have 309 MiB"),
    ],
)
def test_nothing_is_tried_where_it_would_prove_nothing(
    tmp_path: Path, model: onnx.ModelProto, contract: Contract, reason: str
) -> None:
    (found,) = judge(tmp_path, model, contract)
    assert said([found]) == [("skip", f"fixed sizes were not tried, since {reason}")]


def test_text_and_small_floats_are_fed_too(tmp_path: Path) -> None:
    for kind, dtype in ((TensorProto.STRING, "string"), (TensorProto.BFLOAT16, "bfloat16"), (TensorProto.BOOL, "bool")):
        found = judge(tmp_path, identity([2], kind), promised([2], dtype=dtype))
        assert said(found) == [("pass", "the runtime refuses another size where the file fixes one: x, axis 0 = 1, 3")]


def test_large_ranges_take_no_memory(tmp_path: Path) -> None:
    dims = {"n": DimContract(min=1 << 20, max=1 << 25), "m": DimContract(min=1, max=(1 << 63) - 2)}
    found = judge(tmp_path, identity(["n", "n", "m"]), promised(["n", "n", "m"], **dims))
    assert said(found) == [
        (
            "pass",
            "the validator for services refuses what lies outside the ranges: n = 1048575, 33554433; m = 0",
        )
    ]


def test_what_has_no_size_is_not_tried(tmp_path: Path) -> None:
    for contract in (
        promised(["n - 2"], n=DimContract(min=1, max=4)),
        promised(["n"], dtype="sequence(float32)"),
    ):
        assert said(refusal.judge(identity(["n"]), contract, "")) == [
            (
                "skip",
                "not tried: an input is a list, of unknown dtype, or of a size that can't be computed from the dims",
            )
        ]


def test_a_contract_that_refuses_its_own_sizes_fails(tmp_path: Path) -> None:
    contract = promised(["n", "n"], n=DimContract(min=5, max=4))
    (found,) = judge(tmp_path, identity(["n", "n"]), contract)
    assert found.status == "fail"
    assert "the validator refuses the smallest sizes that the contract allows: x, axis 0 (n): 5" in found.message


def cases(tmp_path: Path, *made: MadeCase, **dims: DimContract) -> Finding:
    contract = replace(contract_of(linear_model(), linear_job()), **({"dims": dims} if dims else {}))
    artifact = write_artifact(tmp_path / "a", cases=list(made), contract=contract)
    return validated.judge(artifact, contract, artifact.cases().cases)


def test_cases_inside_are_taken(tmp_path: Path) -> None:
    found = cases(tmp_path, linear_case(), linear_case("eight", 8))
    assert (found.rule, found.status) == ("contract.validator", "pass")
    assert found.message == "the validator for services takes the inputs of all 2 cases"


def test_a_case_beyond_a_declared_range_fails(tmp_path: Path) -> None:
    found = cases(tmp_path, linear_case(), linear_case("nine", 9, "user"))
    assert (found.status, found.subject) == ("fail", "nine")
    assert "refuses the inputs of 1 of 2 cases: nine: x, axis 0 (batch): 9, allowed are 1 to 8" in found.message


def test_a_case_beyond_a_range_that_nobody_declared_warns(tmp_path: Path) -> None:
    nine = linear_case("nine", 9, "user")
    assert cases(tmp_path, linear_case(), nine, batch=DimContract(min=1, max=8)).status == "warn"
    wrong = replace(nine, inputs={"x": nine.inputs["x"].astype(np.float64)})
    assert cases(tmp_path, linear_case(), wrong, batch=DimContract(min=1, max=8)).status == "fail"


def test_cases_that_pytorch_refuses_or_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    refused = replace(linear_case("nine", 9), more={"refused": "too long"})
    assert cases(tmp_path, linear_case(), refused).status == "pass"
    assert cases(tmp_path, refused).status == "skip"


def test_inputs_that_the_file_does_not_take_are_no_matter(tmp_path: Path) -> None:
    made = linear_case()
    more = replace(made, inputs={**made.inputs, "unused": np.zeros(3, np.float32)})
    assert cases(tmp_path, more).status == "pass"
