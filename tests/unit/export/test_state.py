"""A module is left as it was found, and what it gave is kept all the same."""

from __future__ import annotations

import torch
from torch import nn

from onnx_ci.export import state
from onnx_ci.export.types import Call


class Counter(nn.Module):
    """Gives its own buffer, which each call counts up."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x):
        self.count += x
        return self.count


def test_an_output_that_is_a_buffer_keeps_its_value_when_the_buffer_is_put_back():
    module, call = Counter(), Call((torch.ones(2),), {})
    first, second = state.answer(module, call), state.answer(module, call)
    assert [given.values[0].tolist() for given in (first, second)] == [[1, 1], [1, 1]]
    assert module.count.tolist() == [0, 0]


def test_what_a_module_raises_is_its_answer():
    assert state.answer(Counter(), Call((torch.ones(3),), {})).error.startswith("RuntimeError")
