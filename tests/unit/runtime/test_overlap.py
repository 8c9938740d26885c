"""Whether two contracts take one input, against trying all small inputs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnx_ci.records.contract import Contract, DimContract
from onnx_ci.runtime import Validator
from onnx_ci.runtime.overlap import taken_by_both

from .contracts import contract, dim

Shape = list[int | str]


def one_input(shape: Shape, **dims: DimContract) -> Contract:
    return contract({"x": ("float32", shape)}, dims)


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        (one_input([1, 48, 64]), one_input([1, 64, 48]), None),
        (one_input([1, 48, 64]), one_input([1, 48, 64]), {"x": [1, 48, 64]}),
        (one_input([1, 2]), one_input([1, 2, 3]), None),
        (one_input(["n", 3], n=dim(1, 4)), one_input(["n", 3], n=dim(5, 8)), None),
        (one_input(["n", 3], n=dim(1, 5)), one_input(["m", 3], m=dim(5, 8)), {"x": [5, 3]}),
        (one_input(["n"], n=dim(1, 99, 2)), one_input(["n"], n=dim(4, 99, 3)), {"x": [6]}),
        (one_input(["n"], n=dim(1, 5, 2)), one_input(["n"], n=dim(1, 5, 3)), None),
        (one_input(["n"], n=dim(48, 48)), one_input([48]), {"x": [48]}),
        (one_input(["n"], n=dim(48, 48)), one_input([64]), None),
        # Each axis alone would do, both together do not.
        (one_input(["n", "n"], n=dim(1, 99)), one_input([48, 64]), None),
        (one_input(["n", "n"], n=dim(1, 99)), one_input([48, "m"], m=dim(1, 99)), {"x": [48, 48]}),
        (one_input(["n", "m", "n"]), one_input(["p", "p", 4]), {"x": [4, 4, 4]}),
        (one_input(["h", "2*h"], h=dim(1, 99)), one_input([10, 30]), None),
        (one_input(["h", "2*h"], h=dim(1, 99)), one_input([10, 20]), {"x": [10, 20]}),
        (one_input(["2*h"], h=dim(1, 99)), one_input([7]), None),
        (one_input(["2*h"], h=dim(1, 99)), one_input(["h"], h=dim(1, 99)), None),  # not told: looked at again at a call
        (one_input(["?", 4]), one_input([3, 4]), {"x": [3, 4]}),
        (contract({"x": ("float32", None)}), contract({"x": ("float32", None)}), {}),
        (contract({"x": ("float32", [1])}), contract({"x": ("int64", [1])}), None),
        (contract({"x": ("float32", [1])}), contract({"y": ("float32", [1])}), None),
    ],
)
def test_what_two_contracts_share(first: Contract, second: Contract, shared: dict[str, Shape] | None) -> None:
    assert taken_by_both(first, second) == shared
    assert taken_by_both(second, first) == shared


def test_inputs_are_looked_at_together() -> None:
    first = contract({"x": ("float32", ["n"]), "y": ("float32", ["n"])}, {"n": dim(1, 9)})
    assert taken_by_both(first, contract({"x": ("float32", [3]), "y": ("float32", [4])})) is None
    assert taken_by_both(first, contract({"x": ("float32", [3]), "y": ("float32", ["k"])})) == {"x": [3], "y": [3]}


AXES = st.sampled_from(["a", "b", 1, 2, 4])
RANGES = st.builds(dim, st.integers(0, 3), st.integers(3, 6), st.sampled_from([1, 1, 2, 3]))
CONTRACTS = st.builds(
    lambda x, y, a, b: contract({"x": ("float32", x), "y": ("float32", y)}, {"a": a, "b": b}),
    st.lists(AXES, min_size=2, max_size=2),
    st.lists(AXES, min_size=1, max_size=1),
    RANGES,
    RANGES,
)


@settings(deadline=None, max_examples=60)
@given(CONTRACTS, CONTRACTS)
def test_it_agrees_with_trying_every_input(first: Contract, second: Contract) -> None:
    one, other = Validator(first), Validator(second)
    both = []
    for a, b, c in itertools.product(range(7), repeat=3):
        inputs = {"x": np.zeros((a, b), np.float32), "y": np.zeros(c, np.float32)}
        if not one.problems(inputs) and not other.problems(inputs):
            both.append({"x": [a, b], "y": [c]})
    shared = taken_by_both(first, second)
    assert (shared is not None) == bool(both)
    assert shared is None or shared in both
