"""A number of the length, rounded up: whole in Python's floats at 48, just above it in the file's."""

import math

import torch


class Scale(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + math.ceil((x.shape[-1] + 2) * 0.3)


def build() -> torch.nn.Module:
    return Scale().eval()
