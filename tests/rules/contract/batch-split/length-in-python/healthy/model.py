"""The rows are weighed by their number twice, each time as the tensor has it."""

import torch
from torch import nn


class Weighed(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 4)

    def forward(self, x):
        return self.linear(x) * (x.shape[0] / x.size(0))


def build():
    torch.manual_seed(0)
    return Weighed().eval()


def cases():
    generator = torch.Generator().manual_seed(1)
    return [("four", {"x": torch.randn(4, 6, generator=generator)})]
