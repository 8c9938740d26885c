"""A number of the length, rounded up by whole numbers alone."""

import torch


class Scale(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + (3 * (x.shape[-1] + 2) + 9) // 10


def build() -> torch.nn.Module:
    return Scale().eval()
