from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from onnx_ci.numerics.golden import compare_golden, judge_golden
from onnx_ci.records.model import ParitySpec
from onnx_ci.records.result import Finding

F = np.float32


def judged(golden: dict, actual: dict, **more: object) -> list[Finding]:
    return judge_golden(compare_golden("example", golden, actual, who="cpu", **more))  # type: ignore[arg-type]


def status(golden: dict, actual: dict, **more: object) -> dict[str, str]:
    return {one.subject: one.status for one in judged(golden, actual, **more)}


def test_nothing_compared_is_an_error() -> None:
    assert [one.status for one in judge_golden([])] == ["error"]


def test_last_digits_are_no_drift() -> None:
    softmax = F([[0.09003058, 0.2447284, 0.665241]])
    golden = {"p": softmax, "sum": F([30.192873])}
    assert status(golden, {"p": F([[0.09003057, 0.24472848, 0.66524094]]), "sum": F([30.192877])}) == {
        "p": "pass",
        "sum": "pass",
    }


def test_moved_weights_are() -> None:
    found = judged({"y": F([[2.6, 0.4875], [4.1, 1.55]])}, {"y": F([[2.625, 0.4875], [4.14, 1.55]])})
    assert found[0].status == "fail"
    assert "most at [1, 0]: 4.1 reviewed, 4.14 now" in found[0].message
    assert "onnx-ci golden accept" in found[0].hint


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("shift", "expected"), [(5e-6, "pass"), (5e-5, "fail")])
def test_judged_by_relative_error_at_any_scale(scale: float, shift: float, expected: str) -> None:
    golden = (np.random.default_rng(0).standard_normal((4, 8)) * scale).astype(F)
    assert status({"y": golden}, {"y": golden * F(1 + shift)}) == {"y": expected}


def test_one_element_of_many() -> None:
    golden = np.ones((1000, 1000), F)
    moved = golden.copy()
    moved[2, 3] = 1.001
    assert "in one element" in judged({"y": golden}, {"y": moved})[0].message


def test_an_ill_conditioned_model_moves_more() -> None:
    golden = F([1, 2, 3])
    assert status({"y": golden}, {"y": golden * F(1.0003)}, e_torch={"y": 1e-4}) == {"y": "pass"}
    assert status({"y": golden}, {"y": golden * F(1.0005)}, e_torch={"y": 1e-4}) == {"y": "fail"}
    assert status({"y": golden}, {"y": golden * F(1.0003)}, e_torch={"y": None}) == {"y": "fail"}


@pytest.mark.parametrize("error", [1e9, float("inf"), 0.5])
def test_zero_but_for_rounding(error: float) -> None:
    golden, moved = F([1e-8, -2e-8]), F([3e-8, 1e-8])
    assert status({"y": golden}, {"y": moved}, e_torch={"y": error}) == {"y": "pass"}
    assert status({"y": golden}, {"y": F([0.1, 0])}, e_torch={"y": error}) == {"y": "fail"}


def test_a_golden_of_zeros() -> None:
    assert status({"y": np.zeros(3, F)}, {"y": np.full(3, 1e-8, F)}) == {"y": "pass"}
    assert status({"y": np.zeros(3, F)}, {"y": np.full(3, 1e-3, F)}) == {"y": "fail"}


@pytest.mark.parametrize(("dtype", "step"), [(np.float16, 2e-3)])
def test_halves_may_move_by_a_last_place(dtype: type, step: float) -> None:
    golden = np.ones(4, dtype)
    assert status({"y": golden}, {"y": (golden + step).astype(dtype)}) == {"y": "pass"}
    assert status({"y": golden}, {"y": (golden * 1.1).astype(dtype)}) == {"y": "fail"}


class TestNearTieOnAnotherProcessor:
    GOLDEN: ClassVar = {"score": F([[0.15536244, 0.4223188, 0.42231876]]), "top": np.array([1])}

    def test_is_no_drift_and_is_said(self) -> None:
        logits = np.array([[0.0, 1.0, 1.0 + 2**-22]])
        score = (np.exp(logits) / np.exp(logits).sum()).astype(F)
        found = judged(self.GOLDEN, {"score": score, "top": score.argmax(-1)})
        assert [one.status for one in found] == ["pass", "pass"]
        assert "1 flip" in found[1].message

    def test_fails_where_ties_are_to_be_exact(self) -> None:
        actual = {"score": self.GOLDEN["score"], "top": np.array([2])}
        assert status(self.GOLDEN, actual, spec=ParitySpec(ties="exact"))["top"] == "fail"

    def test_another_class_is_drift(self) -> None:
        found = judged(self.GOLDEN, {"score": self.GOLDEN["score"], "top": np.array([0])})
        assert found[1].status == "fail"
        assert "1 reviewed, 0 now" in found[1].message


@pytest.mark.parametrize(
    ("actual", "text"),
    [
        ({}, "is no longer given"),
        ({"y": F([1, 2]), "z": F([1])}, "is new"),
        ({"y": np.array([1.0, 2.0])}, "has another dtype: expected float32, got float64"),
        ({"y": F([1, 2, 3])}, "has another shape"),
        ({"y": [F([1, 2])]}, "has another structure"),
        ({"y": F([1, np.nan])}, "has another nonfinite"),
    ],
)
def test_every_layer_is_drift(actual: dict, text: str) -> None:
    failed = [one for one in judged({"y": F([1, 2])}, actual) if one.status == "fail"]
    assert [text in one.message for one in failed] == [True]


def test_each_who_and_output_is_judged_over_its_cases() -> None:
    one, moved = {"y": F([1, 2])}, {"y": F([1, 3])}
    comparisons = [
        *compare_golden("a", one, one, who="cpu"),
        *compare_golden("b", one, moved, who="cpu", dims={"batch": 2}),
        *compare_golden("a", one, one, who="PyTorch"),
    ]
    found = judge_golden(comparisons)
    assert [(one.data["who"], one.status) for one in found] == [("cpu", "fail"), ("PyTorch", "pass")]
    assert "in case 'b' (batch=2); 1 of 2 cases" in found[0].message
