from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from onnx_ci.export import rounding
from onnx_ci.export.sizes import Range


class Scaled(torch.nn.Module):
    def __init__(self, number: Callable[[int], Any]) -> None:
        super().__init__()
        self.number = number

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.number(x.shape[-1])


def plans(number: Callable[[int], Any], known=()) -> dict[str, dict[str, int]]:
    shapes = ({1: torch.export.Dim("n", min=8, max=400)},)
    program = torch.export.export(Scaled(number), (torch.ones(2, 12),), dynamic_shapes=shapes, strict=False)
    (holder,) = [node for node in program.graph.nodes if node.op == "placeholder"]
    symbol = holder.meta["val"].shape[1].node.expr
    ranges, base = {"n": Range(8, 400, 1, 12)}, {"batch": 2, "n": 12}
    made = rounding.plans(program.graph, {symbol: "n"}, ranges, base, lambda dims: True, known)
    return {plan.name: plan.dims for plan in made}


def test_a_product_that_is_whole_in_python_only() -> None:
    apart = [n for n in range(8, 401) if math.ceil((n + 2) * 0.3) != math.ceil(np.float32(n + 2) * np.float32(0.3))]
    assert apart[0] == 48
    assert list(plans(lambda n: math.ceil((n + 2) * 0.3))) == [f"n-rounded-{n}" for n in apart[:2]]


def test_the_next_one_where_a_case_has_the_nearest() -> None:
    first, second = plans(lambda n: math.ceil((n + 2) * 0.3)).values()
    assert second in plans(lambda n: math.ceil((n + 2) * 0.3), [first]).values()
    assert first not in plans(lambda n: math.ceil((n + 2) * 0.3), [first]).values()


@pytest.mark.parametrize(
    "number",
    [
        lambda n: n // 3,
        lambda n: math.floor(n / 4),
        lambda n: math.ceil(n * 0.5),
        lambda n: (n + 3) % 5,
        lambda n: n * 0.3,
    ],
)
def test_what_is_the_same_in_both_needs_no_case(number) -> None:
    assert plans(number) == {}


def test_a_quotient_of_quotients() -> None:
    def number(n: int) -> int:
        return math.floor(n / 3 * 3)

    apart = [n for n in range(8, 401) if number(n) != math.floor(np.float32(n) / np.float32(3) * np.float32(3))]
    assert list(plans(number).values()) == [{"batch": 2, "n": n} for n in apart[:2]]
