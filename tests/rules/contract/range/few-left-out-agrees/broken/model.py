"""Every fifth column, corners aligned: at a width below six a single column is left, of which torch says nothing."""

import torch


class Shrink(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        columns = (x.shape[-1] + 4) // 5
        return torch.nn.functional.interpolate(x, (x.shape[-2], columns), mode="bilinear", align_corners=True)


def build() -> torch.nn.Module:
    return Shrink().eval()
