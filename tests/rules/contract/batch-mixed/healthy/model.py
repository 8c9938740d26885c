"""Rows are centred each by its own mean."""

import torch
from torch import nn


class Centred(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 4)

    def forward(self, x):
        return self.linear(x - x.mean(1, keepdim=True))


def build():
    torch.manual_seed(0)
    return Centred().eval()
