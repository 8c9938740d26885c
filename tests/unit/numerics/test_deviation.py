"""How far a twin is from the oracle: what counts, what is excused, and what keeps the two from being compared."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onnx_ci.numerics.deviation import deviations
from onnx_ci.records.cases import Case

CASE = Case(index=0, name="example", origin="example", why="")
R = np.random.default_rng(3).standard_normal((4, 25))
T = R.astype(np.float32)


def one(got, truth=R, own=T, unit=1.0, case=CASE):
    (found,) = deviations(case, {"y": got}, {"y": truth}, {"y": own}, unit)
    return found


def test_the_error_is_relative_to_the_norm_of_the_oracle():
    found = one(R * (1 + 1e-6))
    assert (found.error, found.kind, found.fault) == (pytest.approx(1e-6), "float", "")
    assert found.e_torch == pytest.approx(3e-8, rel=0.3)
    assert found.own == pytest.approx(1e-6, rel=0.05)


def test_what_overflows_in_the_dtype_of_the_file_does_not_matter():
    huge = R * 1e60
    with np.errstate(over="ignore"):
        found = one(huge * (1 + 1e-6), huge, huge.astype(np.float32))
    assert found.error == pytest.approx(1e-6)


@pytest.mark.parametrize(
    ("got", "said"),
    [
        (R[:3], "another shape, expected [4, 25], got [3, 25]"),
        (None, "expected a tensor, got an empty optional"),
        ([R], "expected a tensor, got a sequence of 1"),
        (np.where(R > 2, np.nan, R), "NaN or infinity stands at other places"),
        (np.where(R > 2, np.inf, R), "NaN or infinity stands at other places"),
    ],
)
def test_what_can_not_be_compared_is_a_fault(got, said):
    found = one(got)
    assert said in found.fault
    assert found.doubtful


def test_an_output_that_is_zero_but_for_rounding_has_no_relative_error():
    noise = np.random.default_rng(4).standard_normal((2, *R.shape)) * 1e-17
    found = one(noise[0], noise[1], (noise[1] + 3e-9).astype(np.float32))
    assert (found.kind, found.floor) == ("zero", 5e-6)
    assert found.error < 1e-16
    assert not found.doubtful
    assert one(R, np.zeros_like(R), np.zeros_like(T)).error > 0.5


def test_an_item_of_a_sequence_is_told_apart_and_a_missing_one_is_a_fault():
    both = deviations(CASE, {"y": [R, 2 * R]}, {"y": [R, R]}, {"y": [T, T]}, 1.0)
    assert [(found.output, found.base) for found in both] == [("y[0]", "y"), ("y[1]", "y")]
    assert [found.error for found in both] == [0.0, pytest.approx(1.0)]
    assert one([R], [R, R], [T, T]).fault


def test_a_map_is_compared_key_by_key():
    truth = {"a": np.float64(3.0), "b": np.float64(4.0)}
    own = {key: np.float32(value) for key, value in truth.items()}
    assert one({"b": np.float64(4.0), "a": np.float64(3.0 + 5e-6)}, truth, own).error == pytest.approx(1e-6)
    assert "no key 'b'" in one({"a": np.float64(3.0), "c": np.float64(4.0)}, truth, own).fault


def test_random_outputs_are_left_out():
    case = Case(index=0, name="example", origin="example", why="", nondeterministic=["y"])
    assert deviations(case, {"y": 2 * R}, {"y": R}, {"y": T}, 1.0) == []


def test_an_index_counts_where_pytorch_is_sure_of_it():
    truth = np.array([1, 2, 3, 4])
    assert one(np.array([1, 2, 3, 9]), truth, truth).error == 0.25
    assert one(np.array([1, 2, 3, 9]), truth, np.array([1, 2, 3, 8])).error == 0.0
    assert one(np.array(["a", "b"], object), np.array(["a", "c"], object), None).error == 0.5


def test_a_flip_where_scores_tie_excuses_the_floats_that_it_chose():
    scores = np.array([[0.5, 0.5 + 1e-9, 0.1]])
    near = np.array([[0.5 + 2e-9, 0.5, 0.1]])
    oracle = {"scores": scores, "index": np.array([1]), "box": np.array([[3.0, 4.0]])}
    twin = {"scores": near, "index": np.array([0]), "box": np.array([[7.0, 8.0]])}
    own = {name: value.astype(np.float32) if value.dtype == np.float64 else value for name, value in oracle.items()}
    found = {each.output: each.error for each in deviations(CASE, twin, oracle, own, 1.0)}
    assert found["index"] == 0.0
    assert found["box"] == 0.0


def test_nothing_there_is_no_error():
    assert one(None, None, None).error == 0.0
    empty = np.zeros((0, 3))
    assert one(empty, empty, empty.astype(np.float32)).error == 0.0


def test_nan_in_both_is_left_out_and_complex_numbers_are_two():
    holed = np.where(R > 1, np.nan, R)
    assert one(holed * (1 + 1e-6), holed, holed.astype(np.float32)).error == pytest.approx(1e-6)
    both = R + 1j * R
    assert one(both * (1 + 1e-6), both, both.astype(np.complex64)).error == pytest.approx(1e-6)


def test_without_pytorchs_own_output_nothing_is_excused():
    assert one(R * (1 + 1e-6), R, None).own == math.inf


def test_where_pytorch_itself_is_not_its_float64_form_the_file_is_held_against_pytorch():
    row = np.arange(4)[:, None] == 1
    masked = np.where(row, np.nan, T)
    found = one(np.where(row, np.nan, R * (1 + 1e-6)), np.where(row, 0.0, R), masked.astype(np.float32))
    assert found.fault == ""
    assert found.error == pytest.approx(1e-6, rel=0.05)
    assert one(R, np.where(row, 0.0, R), masked.astype(np.float32)).fault == ""  # it gives numbers, as float64 does
    assert one(np.where(row, np.nan, R), np.where(row, 0.0, R), np.where(row, 0.0, T)).fault
