"""Constants of a file that the exporter made are told from the module's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from onnx_ci.export import made

pytestmark = pytest.mark.torch


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.head = nn.Linear(40, 30)
        self.rnn = nn.GRU(6, 5)
        self.short = nn.Parameter(torch.randn(50).half())
        self.register_buffer("table", torch.rand(9, 7), persistent=False)
        self.plain = torch.rand(11)
        self.several = [torch.rand(12), None]
        self.numbers = np.random.default_rng(0).random(13, np.float32)
        self.scale = nn.Parameter(torch.tensor(1.7))


@pytest.fixture(scope="module")
def held():
    return Holder()


def told(module, *constants):
    named = [(str(at), np.asarray(value, np.float64)) for at, value in enumerate(constants)]
    return made.names(named, made.Own.of(module))


def test_what_the_module_holds_is_its_own(held):
    own = [held.head.weight, held.short, held.table, held.plain, held.several[0], held.scale]
    assert told(held, *(value.detach().float().numpy() for value in own), held.numbers) == []


def test_a_transpose_another_shape_and_reordered_gates_are_its_own(held):
    weight = held.head.weight.detach().numpy()
    gates = held.rnn.weight_ih_l0.detach().numpy().reshape(3, 5, 6)
    both = np.concatenate([held.rnn.bias_ih_l0.detach().numpy(), held.rnn.bias_hh_l0.detach().numpy()])
    assert told(held, weight.T, weight.reshape(1, 1200), gates[[1, 0, 2]].reshape(1, 15, 6), both[None]) == []


def test_folded_scaled_and_python_numbers_were_made(held):
    weight = held.head.weight.detach().numpy()
    changed = weight.copy()
    changed[3, 4] *= 1.5
    assert told(held, weight * 1.01, changed, 0.1, [0.1, 0.2], 1 / np.sqrt(40)) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_elements_that_any_large_model_has_say_nothing(dtype):
    torch.manual_seed(0)
    large = nn.Linear(700, 700).to(dtype)
    folded = (torch.rand(40, 5) / 30).to(dtype).float().numpy()
    assert np.isin(folded, large.weight.detach().float().numpy()).mean() > 0.9
    assert told(large, folded[np.isin(folded, large.weight.detach().float().numpy())]) == ["0"]
    single = nn.Linear(700, 700)
    assert told(single, single.weight.detach().numpy()[0, :9]) == ["0"]
    assert told(single, single.weight.detach().numpy()[:100]) == []


def test_whole_numbers_were_not_rounded(held):
    assert told(held, 3.0, [0.0, -1.0], np.finfo(np.float32).min, -np.inf, np.zeros(0)) == []


def test_a_number_is_not_its_own_because_it_stands_somewhere_in_a_weight(held):
    assert told(held, held.head.weight[2, 3].item()) == ["0"]
