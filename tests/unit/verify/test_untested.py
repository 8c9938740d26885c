from __future__ import annotations

from dataclasses import replace

import pytest

from onnx_ci.records.cases import Case, CaseList
from onnx_ci.records.contract import Contract, DimContract, TensorContract
from onnx_ci.records.model import DimSpec
from onnx_ci.verify import untested

from .artifacts import contract_of, linear_job, linear_model

DIM = DimSpec(min=1, max=100_000, example=2)
BUDGET = "batch at 341, short of its maximum 100000, to stay within the budget of memory and time"


def contract(dim: DimSpec = DIM, **changes: object) -> Contract:
    return contract_of(linear_model(), linear_job(dims={"batch": dim}), **changes)


def listed(*sizes: int, notes: list[str] | None = None, why: str = "", refused: str = "") -> CaseList:
    cases = [
        Case(index=at, name=f"c{at}", origin="boundary", why=why, refused=refused, dims={"batch": size})
        for at, size in enumerate(sizes)
    ]
    cases[-1] = replace(cases[-1], name="batch-max")
    return CaseList(schema_version=1, cases=cases, notes=notes or [])


def test_a_trace_proves_nothing_of_what_the_budget_left_out() -> None:
    (found,) = untested.judge(contract(exporter="torchscript"), listed(1, 341, why=BUDGET), {"batch": DIM})
    assert (found.status, found.subject) == ("warn", "batch")
    assert found.message.startswith(
        "batch is declared up to 100000; the largest size tried is 341, to stay within the budget of memory and time; "
    )
    assert found.message.endswith("so nothing proves the rest")
    assert found.data == {"max": {"declared": 100_000, "tried": [1, 341]}}


def test_a_capture_whose_guards_could_not_be_read_proves_nothing_either() -> None:
    (found,) = untested.judge(contract(strategy="public"), listed(1, 341), {"batch": DIM})
    assert found.status == "warn"
    assert "guards could not be read" in found.message


@pytest.mark.parametrize("strategy", ["own", "own+refined"])
def test_guards_cover_the_rest_and_the_report_still_says_what_was_tried(strategy: str) -> None:
    (found,) = untested.judge(contract(strategy=strategy), listed(1, 341, why=BUDGET), {"batch": DIM})
    assert found.status == "pass"
    assert "the largest size tried is 341" in found.message
    assert found.message.endswith("the capture's guards cover the rest")
    assert found.data


def test_a_minimum_that_no_case_reaches_is_told_too() -> None:
    (found,) = untested.judge(contract(exporter="torchscript"), listed(2, 100_000), {"batch": DIM})
    assert found.message.startswith("batch is declared from 1; the smallest size tried is 2;")


def test_a_case_that_was_left_out_is_the_reason() -> None:
    notes = [
        "case other-max was left out: its inputs are too large",
        "case batch-max was left out: there are 24 already",
    ]
    (found,) = untested.judge(contract(exporter="torchscript"), listed(1, 7, notes=notes), {"batch": DIM})
    assert "since a larger case was left out: there are 24 already" in found.message


def test_a_size_that_pytorch_refused_was_tried() -> None:
    found = untested.judge(contract(exporter="torchscript"), listed(1, 100_000, refused="no"), {"batch": DIM})
    assert [one.status for one in found] == ["pass"]


def test_the_largest_multiple_is_the_end() -> None:
    made = contract(exporter="torchscript")
    made = replace(made, dims={"batch": DimContract(min=1, max=100, multiple_of=32, declared=True)})
    spec = DimSpec(min=1, max=100, multiple_of=32)
    assert [one.status for one in untested.judge(made, listed(32, 96), {"batch": spec})] == ["pass"]
    assert [one.status for one in untested.judge(made, listed(32, 64), {"batch": spec})] == ["warn"]


def test_only_what_the_config_states_is_judged() -> None:
    open_ended = DimSpec(min=1)
    (found,) = untested.judge(contract(open_ended, exporter="torchscript"), listed(1, 5), {"batch": open_ended})
    assert (found.status, found.message) == ("pass", "cases reach all 1 ends of the declared ranges")
    (found,) = untested.judge(contract(DimSpec(), exporter="torchscript"), listed(3), {"batch": DimSpec()})
    assert (found.status, found.message) == ("pass", "no dim has a declared range")


def test_a_range_that_did_not_hold_and_a_dim_of_no_input_are_left_to_other_rules() -> None:
    narrowed = contract(exporter="torchscript", narrowed={"batch": "batch <= 16"})
    assert [one.status for one in untested.judge(narrowed, listed(1, 16), {"batch": DIM})] == ["pass"]
    fixed = contract(exporter="torchscript", inputs=[TensorContract(name="x", dtype="float32", shape=[2, 3])])
    assert [one.status for one in untested.judge(fixed, listed(2), {"batch": DIM})] == ["pass"]
