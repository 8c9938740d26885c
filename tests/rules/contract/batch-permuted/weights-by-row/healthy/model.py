"""Each row is divided by its norm, as a tensor."""

import torch
from torch import nn


class Normed(nn.Module):
    def forward(self, x):
        norms = x.norm(dim=1)
        return x / norms[:, None]


def build():
    return Normed().eval()


def cases():
    return [("three", {"x": torch.tensor([[1.0, 2.0], [30.0, 5.0], [0.1, 0.7]])})]
