"""Rows left over by threes: at every third height none is left, and PyTorch refuses to make a picture of them."""

import torch


class Remainder(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = (x.shape[-2] + 3) % 3
        return torch.nn.functional.interpolate(x, (rows, x.shape[-1]), mode="bilinear", align_corners=True)


def build() -> torch.nn.Module:
    return Remainder().eval()
