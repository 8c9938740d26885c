"""Which inner value is over its budget, and which of those is where it began."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onnx_ci.numerics.divergence import Gap, function_gap, gap, trail, values_text

RNG = np.random.default_rng(0)
EXACT = RNG.standard_normal((4, 8))
OWN = EXACT.astype(np.float32)


def made(name, divergent=False, e_torch=1e-7):
    return Gap(name=name, divergent=divergent, times=9.0 if divergent else 0.1, text="", e_torch=e_torch)


def trailed(chain, divergent, outputs, errors=None):
    gaps = [made(name, name in divergent, (errors or {}).get(name, 1e-7)) for name in chain]
    return trail(gaps, chain, outputs)


LINE = {"a": [], "b": ["a"], "c": ["b"], "d": ["c"]}


def test_rounding_is_within_budget_and_another_formula_is_not():
    assert not gap("x", OWN * np.float32(1 + 1e-7), OWN, EXACT).divergent
    wrong = gap("x", OWN * np.float32(1.001), OWN, EXACT)
    assert wrong.divergent
    assert wrong.times > 100
    assert "times its budget" in wrong.text
    assert values_text(wrong).startswith(f" at {wrong.at}: expected ")


@pytest.mark.parametrize(
    "actual",
    [OWN[:2], np.where(OWN > 1, np.float32(np.nan), OWN), np.full_like(OWN, np.nan)],
    ids=["shape", "a NaN", "all NaN"],
)
def test_what_no_budget_can_hold(actual):
    found = gap("x", actual, OWN, EXACT)
    assert found.divergent
    assert found.times == math.inf


def test_without_float64_the_fixed_tolerances_judge():
    assert not gap("x", OWN * np.float32(1 + 1e-5), OWN, None, why="no oracle").divergent
    assert gap("x", OWN * np.float32(1.01), OWN, None, why="no oracle").divergent


def test_whole_numbers_are_exact_and_a_lone_number_has_one_shape():
    index = np.arange(4)
    assert not gap("x", index.astype(np.int32), index, index).divergent
    off = gap("x", index + np.array([0, 0, 1, 0]), index, index)
    assert (off.divergent, off.at, off.expected, off.actual) == (True, [2], "2", "3")
    assert not gap("x", np.array([5]), np.array(5), np.array(5)).divergent


def test_a_graph_in_float64_has_no_rounding_to_hide_behind():
    assert not function_gap("x", EXACT * (1 + 1e-12), EXACT, 1e-9).divergent
    assert function_gap("x", EXACT * (1 + 1e-8), EXACT, 1e-9).divergent
    assert function_gap("x", np.where(EXACT > 1, np.nan, EXACT), EXACT, 1e-9).divergent
    assert function_gap("x", EXACT[:, :3], EXACT, 1e-9).divergent
    assert function_gap("x", np.array([True, False]), np.array([True, True]), 1e-9).divergent


def test_the_first_of_a_chain_is_the_candidate_and_the_rest_carry():
    found = trailed(LINE, {"b", "c", "d"}, ["d"])
    assert (found.candidates, found.carriers) == (["b"], ["c", "d"])


def test_what_does_not_lead_to_the_output_is_no_candidate():
    found = trailed({**LINE, "side": ["a"]}, {"side", "c", "d"}, ["d"])
    assert found.candidates == ["c"]


def test_a_chain_that_was_broken_is_looked_at_from_its_end_first():
    found = trailed(LINE, {"a", "c", "d"}, ["d"])
    assert found.candidates == ["c", "a"]


def test_two_beginnings_come_in_order():
    found = trailed({"a": [], "b": [], "c": ["a", "b"]}, {"a", "b", "c"}, ["c"])
    assert found.candidates == ["a", "b"]


def test_an_output_that_nobody_saw_still_leads_up():
    assert trailed(LINE, {"b"}, ["d"]).candidates == ["b"]
    assert trailed(LINE, set(), ["d"]).candidates == []


def test_where_pytorchs_own_error_jumps_is_listed_apart():
    errors = {"a": 1e-7, "b": 2e-6, "c": 3e-6, "d": 1e-7}
    assert trailed(LINE, {"d"}, ["d"], errors).amplifiers == ["b"]
