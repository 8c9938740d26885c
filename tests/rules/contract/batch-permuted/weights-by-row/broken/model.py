"""Each row is divided by a norm that Python computes: the older exporter keeps the norms of the example's rows."""

import torch
from torch import nn


class Normed(nn.Module):
    def forward(self, x):
        norms = torch.tensor([float(row.norm()) for row in x])
        return x / norms[:, None]


def build():
    return Normed().eval()


def cases():
    return [("three", {"x": torch.tensor([[1.0, 2.0], [30.0, 5.0], [0.1, 0.7]])})]
