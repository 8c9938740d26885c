"""Every fifth column, corners not aligned: torch says that it holds at every width."""

import torch


class Shrink(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        columns = (x.shape[-1] + 4) // 5
        return torch.nn.functional.interpolate(x, (x.shape[-2], columns), mode="bilinear")


def build() -> torch.nn.Module:
    return Shrink().eval()
