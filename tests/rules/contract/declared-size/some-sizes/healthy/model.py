"""A third of the rows: there is one at every height that is declared."""

import torch


class Third(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.shape[-2] // 3
        return torch.nn.functional.interpolate(x, (rows, x.shape[-1]), mode="bilinear")


def build() -> torch.nn.Module:
    return Third().eval()
