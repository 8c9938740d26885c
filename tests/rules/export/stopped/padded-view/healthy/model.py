import torch
import torch.nn.functional as F
from torch import nn


class Blocks(nn.Module):
    """Pads to whole blocks of four and takes the largest of each: true at every length."""

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        padded = F.pad(signal, (0, -signal.shape[-1] % 4))
        return padded.reshape(*padded.shape[:-1], padded.shape[-1] // 4, 4).amax(-1)


def build() -> nn.Module:
    return Blocks().eval()
