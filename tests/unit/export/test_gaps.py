"""How far two tensors are apart, and which output is which."""

from __future__ import annotations

import math

import pytest
import torch

from onnx_ci.export.gaps import gap, match
from onnx_ci.export.types import Outputs

NAN, INF = math.nan, math.inf


def outputs(*values, keys=None):
    return Outputs(list(values), list(keys) if keys else [""] * len(values))


def test_the_largest_difference_is_found_with_its_place_and_limit():
    one = torch.tensor([[1.0, 2.0], [3.0, -4.0]], dtype=torch.float64)
    other = one.clone()
    other[1, 0] += 1e-6
    found = gap(one, other, 1e-9, 1e-12)
    assert (found.kind, found.at, found.peak) == ("beyond", [1, 0], 4.0)
    assert found.figure == pytest.approx(1e-6)
    assert found.limit == pytest.approx(4e-9 + 1e-12)
    assert gap(one, other, 1e-6, 0.0).kind == "within"


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ([1.0, NAN], [1.0, NAN], "within"),
        ([-INF, INF], [-INF, INF], "within"),
        ([INF, 0.0], [-INF, 0.0], "gained"),
        ([1.0, 2.0], [1.0, NAN], "lost"),
        ([1.0, 2.0], [1.0, INF], "lost"),
        ([1.0, -INF], [1.0, -1e9], "gained"),
        ([1.0, NAN], [1.0, 0.0], "gained"),
        ([INF, 0.0], [NAN, 0.0], "lost"),
        ([1.0, -INF], [2.0, -1e9], "beyond"),
    ],
)
def test_places_that_are_finite_in_one_only_are_told_apart(one, other, kind):
    assert gap(torch.tensor(one), torch.tensor(other), 1e-9, 0.0).kind == kind


def test_integers_are_compared_exactly_and_with_floats_by_value():
    big = 2**53
    assert gap(torch.tensor([big]), torch.tensor([big + 1]), 1.0, 1.0).kind == "beyond"
    assert gap(torch.tensor([True, False]), torch.tensor([True, True]), 1.0, 1.0).figure == 1.0
    assert gap(torch.tensor([1, 2]), torch.tensor([1.0, 2.0]), 0.0, 0.0).kind == "within"


def test_complex_numbers_have_the_index_of_the_number():
    one = torch.tensor([1 + 1j, 2 + 2j])
    assert gap(one, one + torch.tensor([0, 1j]), 0.0, 0.0).at == [1]


def test_nothing_is_within():
    assert gap(torch.empty(0, 3), torch.empty(0, 3), 0.0, 0.0).kind == "within"


def test_outputs_are_matched_by_key_by_order_or_as_they_fit():
    one, two, three = torch.zeros(2), torch.ones(3), torch.ones(2)
    assert match(outputs(one, two, keys=["a", "b"]), outputs(two, one, keys=["b", "a"])) == [(1, 0), (0, 1)]
    assert match(outputs(one, two, keys=["a", "b"]), outputs(one, two)) == [(0, 0), (1, 1)]
    assert match(outputs(one, two, three), outputs(two)) == [(1, 0)]
    assert match(outputs(one, two, three), outputs(three)) == [(2, 0)]
    assert match(outputs(three), outputs(one, two, three)) == [(0, 2)]
