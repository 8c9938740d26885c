"""Rows that PyTorch keeps apart must keep apart in the file: in parts, and in another order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onnx_ci.records.cases import BatchIdentity, Case, CaseList
from onnx_ci.records.model import ParitySpec, Tolerance
from onnx_ci.records.result import OutputFigures
from onnx_ci.verify.batch import judge

ROWS = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
ORDER = [3, 0, 1, 2]
IDENTITY = BatchIdentity(
    dim="batch", whole=0, parts=[1, 2], permuted=3, order=ORDER, split=["y"], permutes=["y"], not_held={}
)


def listed(identity=IDENTITY):
    sizes = [4, 1, 3, 4]
    cases = [
        Case(index=at, name=f"case-{at}", origin="boundary", why="", dims={"batch": size})
        for at, size in enumerate(sizes)
    ]
    return CaseList(schema_version=1, cases=cases, batch=identity)


def told(answers, identity=IDENTITY, spec=None, figures=()):
    found = judge(listed(identity), lambda case: answers[case.index], spec or ParitySpec(), list(figures))
    return {one.rule.removeprefix("contract.batch-"): one for one in found}


def answers(rows=ROWS, name="y"):
    return [{name: rows}, {name: rows[:1]}, {name: rows[1:]}, {name: rows[ORDER]}]


def statuses(found):
    return {rule: one.status for rule, one in found.items()}


def test_rows_that_keep_apart_pass():
    found = told(answers())
    assert statuses(found) == {"split": "pass", "permuted": "pass"}
    assert "in parts (1+3)" in found["split"].message


def test_last_digits_are_no_fault():
    given = answers()
    given[2] = {"y": given[2]["y"] * np.float32(1 + 3e-6)}
    given[3] = {"y": given[3]["y"] * np.float32(1 - 3e-6)}
    assert statuses(told(given)) == {"split": "pass", "permuted": "pass"}


def test_what_parity_allows_each_is_allowed_both():
    given = answers()
    given[2] = {"y": given[2]["y"] * np.float32(1.01)}
    row = OutputFigures(
        case="case-2", output="y", dtype="float32", shape=[3, 8], dims={}, status="pass", against="oracle", limit=0.02
    )
    assert statuses(told(given))["split"] == "fail"
    assert statuses(told(given, figures=[row]))["split"] == "pass"
    manual = ParitySpec(outputs={"y": Tolerance(rtol=0.02, atol=0.0, reason="int8")})
    assert statuses(told(given, spec=manual))["split"] == "pass"


def test_a_scale_by_the_batch_is_a_fault_of_the_split():
    found = told([{"y": ROWS}, {"y": ROWS[:1] / 4}, {"y": ROWS[1:] * 3 / 4}, {"y": ROWS[ORDER]}])
    assert statuses(found) == {"split": "fail", "permuted": "pass"}
    assert found["split"].subject == "y"
    assert "relL2" in found["split"].message


def test_an_order_that_does_not_move_is_a_fault_of_the_permutation():
    found = told([{"y": ROWS}, {"y": ROWS[:1]}, {"y": ROWS[1:]}, {"y": ROWS}])
    assert statuses(found) == {"split": "pass", "permuted": "fail"}


def test_another_shape_and_another_nan_are_faults():
    holes = ROWS.copy()
    holes[1, 1] = np.nan
    for part in (ROWS[:2], holes[1:]):
        assert statuses(told([{"y": ROWS}, {"y": ROWS[:1]}, {"y": part}, {"y": ROWS[ORDER]}]))["split"] == "fail"


@pytest.mark.parametrize("wrong", [ROWS[:2], np.float32(1), ROWS[:, None], np.zeros((0, 8), np.float32)])
@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_rows_that_are_missing_or_have_another_shape_are_a_fault(at, wrong):
    given = answers()
    given[at] = {"y": np.asarray(wrong)}
    found = statuses(told(given))
    assert "fail" in found.values()
    assert set(found.values()) <= {"pass", "fail"}


def test_integers_are_exact_but_for_ties_of_their_scores():
    ids = np.arange(4, dtype=np.int64)
    given = answers(ids, "ids")
    identity = replace(IDENTITY, split=["ids"], permutes=["ids"])
    assert statuses(told(given, identity)) == {"split": "pass", "permuted": "pass"}
    given[1] = {"ids": ids[:1] + 1}
    assert statuses(told(given, identity))["split"] == "fail"


def test_a_part_that_the_file_does_not_take_is_a_fault():
    given = answers()
    given[2] = "Got invalid dimensions"
    found = told(given)
    assert statuses(found) == {"split": "fail", "permuted": "pass"}
    assert "the file stops: case-2: Got invalid dimensions" in found["split"].message


@pytest.mark.parametrize("at", [0, 1])
def test_what_can_not_be_told_is_skipped(at):
    given = answers()
    given[at] = None
    assert statuses(told(given))["split"] == "skip"


def test_an_output_that_the_file_calls_otherwise_is_left_to_the_rule_of_names():
    found = told(answers(name="renamed"))
    assert statuses(found) == {"split": "skip", "permuted": "skip"}
    assert "no output y" in found["split"].message


def test_what_pytorch_does_not_have_is_skipped_with_the_reason():
    found = told(answers(), replace(IDENTITY, split=[], not_held={"y": "the rows depend on each other"}))
    assert statuses(found) == {"split": "skip", "permuted": "pass"}
    assert "y: the rows depend on each other" in found["split"].message
    found = told([], BatchIdentity(not_held={"": 'the config says batch = "mixed"'}))
    assert statuses(found) == {"split": "skip", "permuted": "skip"}
    assert "mixed" in found["split"].message


def test_an_artifact_of_before_says_nothing():
    assert told([], None) == {}
