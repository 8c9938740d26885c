"""Values that we make are such as the model may meet: declared, or like those of the user's cases."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from onnx_ci.export.types import DeclaredInput
from onnx_ci.export.values import Seen, fitted, make, repeated

DIMS = {"batch": 6, "time": 9}


def item(*axes, **more):
    return DeclaredInput("x", list(axes), "float32", **more)


def made(one, dtype, *seen, dims=DIMS, seed=0):
    return make(one, dtype, [Seen(value, sizes) for value, sizes in seen], dims, np.random.default_rng(seed))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.complex64])
def test_floats_without_a_hint_are_standard_normal(dtype):
    value = made(item("batch", 500), dtype)
    assert value.dtype == dtype
    assert abs(value.real.double().std().item() - 1) < 0.1


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_integers_without_a_hint_are_zeros_and_ones_with_a_one_in_each_row(dtype):
    value = made(item("batch", "time"), dtype)
    assert value.dtype == dtype
    assert set(value.flatten().tolist()) == {0, 1}
    assert (value.sum(dim=-1) > 0).all()


def test_declared_ends_and_values_hold():
    value = made(item("batch", 50, low=-2.0, high=3.0), torch.float32, (torch.tensor([90.0]), {}))
    assert -2 <= value.min() < -1
    assert 2 < value.max() <= 3
    assert set(made(item("batch", 50, low=3, high=5), torch.int64).flatten().tolist()) == {3, 4, 5}
    assert set(made(item("batch", 50, values=[1, 4]), torch.int64).flatten().tolist()) == {1, 4}


def test_one_declared_end_takes_the_other_from_what_was_seen():
    value = made(item("batch", 50, low=0.0), torch.float32, (torch.tensor([-4.0, 8.0]), {}))
    assert value.min() >= 0
    assert 6 < value.max() <= 8


def test_the_range_seen_holds_and_infinities_do_not_count():
    seen = torch.tensor([-1.0, 4.0, float("inf"), float("nan")])
    value = made(item("batch", 50), torch.float32, (seen, {}))
    assert -1 <= value.min() < 0
    assert 3 < value.max() <= 4
    assert set(made(item("batch", 90), torch.int64, (torch.tensor([5, 8, 7]), {})).flatten().tolist()) == {5, 6, 7, 8}


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32])
def test_masks_keep_an_unmasked_and_a_masked_place_in_each_row(dtype):
    seen = torch.tensor([[1, 0, 1, 1], [0, 1, 1, 0]]).to(dtype)
    value = made(item("batch", "time"), dtype, (seen, {"batch": 2, "time": 4}))
    assert set(value.flatten().tolist()) == {0, 1}
    assert (value == 1).any(dim=-1).all()
    assert (value == 0).any(dim=-1).all()
    alone = made(item("batch", "time"), dtype, (seen, {"batch": 2, "time": 4}), dims={"batch": 6, "time": 1})
    assert (alone == 1).all()


@pytest.mark.parametrize("declared", [{"values": [0, 1]}, {"low": 0, "high": 1}, {"low": -0.5, "high": 1.5}])
@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.uint8])
def test_declared_masks_keep_an_unmasked_place_in_each_row(declared, dtype):
    for seed in range(20):
        value = made(item("batch", "time", **declared), dtype, dims={"batch": 6, "time": 2}, seed=seed)
        assert (value.sum(dim=-1) == 1).all()
        assert made(item("batch", "time", **declared), dtype, dims={"batch": 6, "time": 1}, seed=seed).all()


def test_a_range_of_floats_and_values_that_are_no_mask_are_drawn_freely():
    assert 0 < made(item("batch", "time", low=0, high=1), torch.float32).mean() < 1
    assert made(item("batch", "time", values=[0, 1, 2]), torch.int64).max() == 2
    assert set(made(item("batch", 90, values=[1]), torch.int64).flatten().tolist()) == {1}


def test_a_row_of_one_place_is_the_other_value_when_inverted():
    drawn = make(item("batch", 1), torch.bool, [], DIMS, np.random.default_rng(0), inverted=True)
    assert not drawn.any()


def test_the_examples_values_are_cut_or_repeated():
    value = repeated(torch.tensor([[1, 2, 3], [4, 5, 6]]), item("batch", "time"), {"batch": 3, "time": 2})
    assert value.tolist() == [[1, 2], [4, 5], [1, 2]]


def test_masks_that_are_added_keep_their_two_values():
    seen = torch.tensor([[0.0, -1e4], [0.0, 0.0]])
    value = made(item("batch", "time"), torch.float32, (seen, {}))
    assert set(value.flatten().tolist()) == {0.0, -1e4}
    assert (value == 0).any(dim=-1).all()


def test_a_mask_that_was_never_set_stays_so():
    assert made(item("batch", "time"), torch.int64, (torch.ones(2, 4, dtype=torch.int64), {})).all()


def test_padding_stays_at_the_end():
    seen = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]])
    value = made(item("batch", "time"), torch.int64, (seen, {"batch": 2, "time": 4}))
    assert (value.diff(dim=-1) <= 0).all()


def test_positions_count_up_to_the_new_size():
    value = made(item(1, "time"), torch.int64, (torch.arange(4)[None], {"time": 4}))
    assert value.tolist() == [list(range(9))]


def test_lengths_stay_within_the_new_size_and_in_their_order():
    seen = (torch.tensor([7, 4, 4]), {"batch": 3, "time": 7})
    value = made(item("batch"), torch.int64, seen, dims={"batch": 6, "time": 2})
    assert value.max() == 2
    assert (value.diff() <= 0).all()
    grown = made(item("batch"), torch.int64, seen, dims={"batch": 6, "time": 20})
    assert grown.max() == 20
    assert grown.min() >= 4


def test_indices_into_an_axis_that_shrinks_stay_inside():
    seen = (torch.tensor([[2, 5], [0, 3]]), {"batch": 2, "time": 9})
    value = made(item("batch", 2), torch.int64, seen, dims={"batch": 6, "time": 2})
    assert value.min() >= 0
    assert value.max() <= 1
    assert fitted(torch.tensor(5), [Seen(torch.tensor(5), {"time": 9})], {"time": 2}).item() == 1
    assert fitted(torch.tensor(5), [Seen(torch.tensor(5), {"time": 9})], {"time": 12}).item() == 5


def test_token_ids_are_not_held_to_the_batch():
    seen = (torch.tensor([[3, 8, 1]] * 16), {"batch": 16, "time": 3})
    value = made(item("batch", "time"), torch.int64, seen, dims={"batch": 1, "time": 40})
    assert value.max() > 2


def test_an_axis_may_be_empty_and_a_tensor_a_scalar():
    assert made(item("batch", "time"), torch.int64, dims={"batch": 0, "time": 3}).shape == (0, 3)
    assert made(item("batch", "time"), torch.bool, dims={"batch": 2, "time": 0}).shape == (2, 0)
    for dtype in (torch.int64, torch.float32, torch.bool):
        assert made(item(), dtype).shape == ()
    assert made(item(), torch.float32, (torch.tensor(2.5), {})).item() == 2.5


@pytest.mark.parametrize(("declared", "dtype"), [({"values": [0, 1]}, torch.int64), ({}, torch.bool)])
def test_masks_are_padded_at_the_right_or_have_holes_but_always_begin_unmasked(declared, dtype):
    value = made(item("batch", 9, **declared), dtype, dims={"batch": 40}).int()
    assert (value[:, 0] == 1).all()
    assert (value.min(dim=-1).values == 0).all()
    steps = value.diff(dim=-1)
    assert (steps[::2] <= 0).all()
    assert (steps[1::2] > 0).any()


def test_masks_begin_as_those_of_the_user_do():
    seen = torch.tensor([[0, 1, 1, 1], [0, 0, 1, 1]])
    value = made(item("batch", "time", values=[0, 1]), torch.int64, (seen, {"batch": 2, "time": 4}))
    assert (value.diff(dim=-1) >= 0).all()
    assert (value.sum(dim=-1) >= 1).all()
