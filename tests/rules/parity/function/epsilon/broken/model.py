"""A norm over values with a large variance, where a wrong epsilon hardly shows."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 8)

    def forward(self, x):
        return self.head(self.norm(10.0 * x))


def build():
    torch.manual_seed(0)
    return Model().eval()
