"""The verdict on a function: its limit, what is excused beyond it, which cases are run, and what is said."""

from __future__ import annotations

import math

import pytest

from onnx_ci.numerics import function
from onnx_ci.numerics.deviation import Deviation
from onnx_ci.records.cases import Case, CaseOutput

BLAME = {"y": ("; so it was the optimizer", "look")}
WORDS = function.Words(rule="parity.function", graph="the file", hint="look", blame=BLAME)


def case(index=0, name="example", origin="example", shape=(2, 3), **dims):
    output = CaseOutput(name="y", dtype="float32", shape=list(shape))
    return Case(index=index, name=name, origin=origin, why="", dims=dims, outputs=[output])


def off(error, **more):
    return Deviation(case=case(batch=2), output="y", base="y", error=error, **more)


@pytest.mark.parametrize(
    ("error", "rounding", "status"),
    [
        (1e-16, None, "pass"),
        (0.9e-9, None, "pass"),
        (1.1e-9, None, "fail"),
        (1.1e-9, 2e-10, "fail"),
        (3.9e-7, 1e-7, "pass"),
        (4.1e-7, 1e-7, "fail"),
        (math.nan, 1e-7, "fail"),
        (math.inf, 1e-7, "fail"),
    ],
)
def test_the_limit_is_four_times_what_rounding_does(error, rounding, status):
    assert function.judged(off(error), rounding, whole=True).status == status


@pytest.mark.parametrize(("error", "status"), [(0.9e-7, "pass"), (1.1e-7, "fail"), (5e-7, "fail")])
def test_where_rounding_is_known_in_part_the_limit_is_wider(error, status):
    assert function.judged(off(error), None, whole=False).status == status
    assert function.judged(off(error, e_torch=3e-7), None, whole=False).status == "pass"


def test_what_pytorch_itself_does_in_its_own_dtype_is_excused():
    same = function.judged(off(1e-5, e_torch=1.1e-5, own=2e-7), None, whole=True)
    assert same.status == "pass"
    assert same.excused
    assert function.judged(off(1e-5, e_torch=1.1e-5, own=9e-6), None, whole=True).status == "fail"


def test_an_index_is_excused_by_what_rounding_flips_only():
    assert function.judged(off(0.01, kind="exact"), None, whole=True).status == "fail"
    assert function.judged(off(0.01, kind="exact"), 0.005, whole=True).status == "pass"
    assert function.judged(off(0.01, kind="exact"), None, whole=False).status == "warn"
    assert function.judged(off(0.0, kind="exact"), None, whole=True).status == "pass"


def test_a_fault_fails_unless_rounding_changes_shapes_too():
    assert function.judged(off(math.inf, fault="another shape"), 1.0, whole=True).status == "fail"
    assert function.judged(off(math.inf, fault="another shape"), math.inf, whole=True).status == "skip"
    assert function.judged(off(0.0), math.inf, whole=True).status == "pass"


def test_what_the_reference_ran_is_no_more_than_a_warning():
    assert function.judged(off(2e-8), None, whole=True, exact=False).status == "pass"
    assert function.judged(off(1e-3), None, whole=True, exact=False).status == "warn"


def test_an_output_that_is_zero_but_for_rounding_has_the_floor_of_its_dtype():
    assert function.judged(off(4e-6, kind="zero", floor=5e-6), None, whole=True).status == "pass"
    assert function.judged(off(6e-6, kind="zero", floor=5e-6), None, whole=True).status == "fail"


def test_a_real_case_and_two_of_other_sizes_are_run_one_of_all_without_dims_of_1():
    cases = [
        case(0, "photo", "user", batch=8, height=64),
        case(1, "photos", "user", batch=2, height=48),
        case(2, "one photo", "user", batch=1, height=48),
        case(3, "height-min", "boundary", batch=2, height=32),
        case(4, "batch-min", "boundary", batch=1, height=48),
        case(5, "empty", "boundary", shape=(0, 3), batch=0, height=48),
        case(6, "height-max", "boundary", batch=2, height=512),
        case(7, "height-min, permuted", "boundary", batch=2, height=32),
        case(8, "odd", "boundary", batch=2, height=33),
        Case(index=9, name="refused", origin="boundary", why="", dims={"batch": 1, "height": 1}, refused="no"),
        Case(index=10, name="unoracled", origin="user", why="", dims={"batch": 1, "height": 1}, unoracled="no"),
    ]
    assert [one.name for one in function.chosen(cases)] == ["photos", "batch-min", "height-min"]
    assert [one.name for one in function.chosen(cases[2:])] == ["one photo", "height-min", "odd"]
    assert [one.name for one in function.chosen(cases[3:])] == ["height-min", "batch-min", "odd"]
    assert function.chosen(cases[9:]) == []


def test_a_slow_model_is_told_by_its_smallest_cases():
    cases = [case(0, "real", batch=4), case(1, "min", batch=1), case(2, "other", batch=2)]
    assert [one.name for one in function.affordable(cases, iter([0, 1, 2]).__next__)] == ["min", "other", "real"]
    assert [one.name for one in function.affordable(cases, iter([0, 50, 70]).__next__)] == ["min", "other"]
    assert [one.name for one in function.affordable(cases, iter([0, 900]).__next__)] == ["min"]


def test_a_failure_says_by_how_much_where_and_whose_it_is():
    verdicts = [function.judged(off(error), 5e-8, whole=True) for error in (1e-8, 1.2e-4)]
    (found,) = function.findings(verdicts, WORDS)
    assert found.message == (
        "y: the file is not the module's function: relL2 1.2e-4 in float64, allowed 2.0e-7 (rounding of the exporter's "
        "constants: 5.0e-8); worst in case 'example' (batch=2); 1 of 2 cases; so it was the optimizer"
    )
    assert (found.status, found.subject, found.hint) == ("fail", "y", "look")
    assert found.data["e"] == 1.2e-4
    assert found.data["rounding"] == 5e-8


def test_a_pass_says_the_figure_and_who_ran_it():
    (found,) = function.findings([function.judged(off(2e-16), None, whole=True)], WORDS, ["Foo"])
    assert found.message == (
        "y: relL2 2.0e-16 in float64, allowed 1.0e-9 in case 'example' (batch=2); "
        "Foo was run by onnx's reference, which may err itself"
    )
    assert (found.hint, found.data["by_reference"]) == ("", ["Foo"])


@pytest.mark.parametrize(
    ("deviation", "said"),
    [
        (
            off(math.inf, fault="another shape, expected [2], got [1]"),
            "in float64 another shape, expected [2], got [1]",
        ),
        (off(0.25, kind="exact"), "25.00% of its elements differ in float64, allowed 0.00%"),
        (off(0.0, kind="exact"), "equal in float64"),
        (off(1e-4, kind="zero", floor=5e-6), "rms error 1.0e-4 in float64, allowed 5.0e-6"),
    ],
)
def test_every_kind_of_output_has_its_words(deviation, said):
    (found,) = function.findings([function.judged(deviation, None, whole=True)], WORDS)
    assert said in found.message
