"""The narrow floats of a program, wherever in it they are."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from onnx_ci.export.halves import halves


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


class Rounded(Plain):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x.half().float())


class Autocast(Plain):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            low = self.linear(x)
        return low.float()


class Stored(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(3, dtype=torch.float16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.scale.float()


@pytest.mark.parametrize(
    ("module", "found"),
    [(Plain(), []), (Rounded(), ["float16"]), (Autocast(), ["bfloat16"]), (Stored(), ["float16"])],
    ids=["none", "a cast", "a region", "a buffer"],
)
def test_they_are_found(module: nn.Module, found: list[str]):
    assert halves(torch.export.export(module.eval(), (torch.ones(2, 4),))) == found
