"""Which tensors two modules have in common."""

from __future__ import annotations

import copy

import torch
from torch import nn

from onnx_ci.export.shared import groups, match


def block():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3))


def names(pairs):
    return {pair.original: pair.adapted for pair in pairs}


def test_equal_names_and_values_are_shared():
    found = match(block(), block())
    assert set(names(found.parameters)) == {"0.weight", "0.bias", "1.weight", "1.bias", "2.weight", "2.bias"}
    assert (found.buffers, found.changed, found.only_original, found.only_adapted) == (2, [], [], [])


def test_another_value_is_named_with_its_place():
    other = block()
    with torch.no_grad():
        other[2].weight[3, 1, 0, 2] += 0.5
        other[1].running_mean[0] = float("nan")
        other[1].num_batches_tracked += 1
    weight, mean = match(block(), other).changed
    assert (weight.name, weight.at) == ("2.weight", [3, 1, 0, 2])
    assert abs(weight.largest - 0.5) < 1e-6
    assert (mean.name, mean.at) == ("1.running_mean", [0])


def test_other_names_are_found_by_value_and_ending():
    wrapped = nn.ModuleDict({"model": block()})
    found = match(block(), wrapped)
    assert names(found.parameters) == {name: f"model.{name}" for name, _ in block().named_parameters()}


def test_what_one_module_lacks_is_listed():
    small = nn.Sequential(block()[0])
    found = match(block(), small)
    assert found.only_original[:2] == ["1.weight", "1.bias"]
    assert found.only_adapted == []
    reshaped = nn.Sequential(nn.Conv2d(2, 5, 3))
    assert match(small, reshaped).only_adapted == ["0.weight", "0.bias"]


def test_a_parameter_that_became_a_buffer_is_equal_and_not_learned():
    one, other = nn.Linear(3, 3), nn.Module()
    other.weight, bias = one.weight, one.bias.detach().clone()
    other.register_buffer("bias", bias)
    found = match(one, other)
    assert (names(found.parameters), found.buffers) == ({"weight": "weight"}, 1)


def test_tied_parameters_stand_in_one_group():
    tied = nn.ModuleList([nn.Linear(3, 3, bias=False) for _ in range(3)])
    tied[1].weight = tied[0].weight
    untied = copy.deepcopy(tied)
    untied[1].weight = nn.Parameter(tied[0].weight.detach().clone())
    pairs = match(tied, untied).parameters
    assert [len(group) for group in groups(pairs, tied, untied)] == [2, 1]
    assert [len(group) for group in groups(pairs, untied, copy.deepcopy(untied))] == [1, 1, 1]
