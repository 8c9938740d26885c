"""What is selected in an order that nobody promises is compared in one that fits; what is wrong stays wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onnx_ci.numerics import parity
from onnx_ci.numerics.deviation import deviations
from onnx_ci.numerics.golden import compare_golden
from onnx_ci.numerics.unordered import aligned
from onnx_ci.records.cases import Case, CaseOutput, OpenOrder
from onnx_ci.records.model import ParitySpec

RNG = np.random.default_rng(0)
BEST = RNG.random((2, 5)).astype(np.float32)
AT = np.stack([RNG.permutation(40)[:5] for _ in range(2)])
BOX = RNG.random((2, 4, 5)).astype(np.float32)  # the selected last
ORDERS = {
    "best": OpenOrder(node="topk", axis=1, rows=[0]),
    "at": OpenOrder(node="topk", axis=1, rows=[0]),
    "box": OpenOrder(node="topk", axis=2, rows=[0]),
}
GIVEN = {"best": BEST, "at": AT, "box": BOX}
CASE = Case(
    index=0,
    name="a",
    origin="user",
    why="",
    outputs=[
        CaseOutput(name=name, dtype=str(GIVEN[name].dtype), shape=list(GIVEN[name].shape), order=ORDERS[name])
        for name in GIVEN
    ],
)


def moved(values=GIVEN):
    """The same in another order, another one in each row."""
    orders = np.stack([RNG.permutation(5) for _ in range(2)])
    return {
        "best": np.take_along_axis(values["best"], orders, 1),
        "at": np.take_along_axis(values["at"], orders, 1),
        "box": np.take_along_axis(values["box"], orders[:, None], 2),
    }


def statuses(actual, case=CASE):
    found, _ = parity.judge([parity.compare_case(case, GIVEN, actual, GIVEN, ParitySpec())], ParitySpec())
    return {one.subject for one in found if one.status == "fail"}


def test_each_row_has_an_order_of_its_own():
    made = aligned(ORDERS, GIVEN, moved())
    assert all(np.array_equal(made[name], GIVEN[name]) for name in GIVEN)
    assert statuses(moved()) == set()
    assert statuses(moved(), replace(CASE, outputs=[replace(one, order=None) for one in CASE.outputs])) == set(GIVEN)


def test_rounding_and_elements_without_a_number_are_no_hindrance():
    values = {**GIVEN, "box": BOX.copy()}
    values["box"][0, 0, 0], values["box"][1, 2, 3] = np.nan, np.inf
    other = moved(values)
    other["best"] = other["best"] * np.float32(1 + 1e-6)
    made = aligned(ORDERS, values, other)
    assert np.array_equal(made["box"], values["box"], equal_nan=True)
    assert np.allclose(made["best"], BEST, rtol=1e-5)


def test_a_wrong_value_differs_and_so_does_one_that_comes_twice():
    other = moved()
    other["best"][0, 2] += 0.2
    assert statuses(other) == {"best"}
    twice = moved()
    twice["at"][1, 0] = twice["at"][1, 1]
    assert statuses(twice) == {"at"}


def test_one_order_must_serve_all_that_was_selected_together():
    other = moved()
    other["box"] = other["box"][..., ::-1]
    assert statuses(other)
    alone = {name: replace(one, node=name) for name, one in ORDERS.items()}
    assert np.array_equal(aligned(alone, GIVEN, other)["box"], BOX)


def test_the_file_in_float64_and_goldens_are_compared_likewise():
    found = deviations(CASE, moved(), GIVEN, moved(), 1.0)
    assert [one.error for one in found] == [0.0, 0.0, 0.0]
    assert not any(one.problem for one in compare_golden("a", GIVEN, moved(), who="cpu", orders=ORDERS))
    assert any(one.problem for one in compare_golden("a", GIVEN, moved(), who="cpu"))


def test_outputs_of_another_shape_or_kind_stay_what_they_are():
    other = {"best": BEST[:, :4], "at": [AT], "box": None}
    assert aligned(ORDERS, GIVEN, other) == other
    empty = {"best": BEST[:0]}
    assert aligned(ORDERS, empty, empty) == empty
