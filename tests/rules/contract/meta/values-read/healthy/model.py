"""Rows that do not pass stay, so that all sizes can be told without data."""

import torch
from torch import nn


class Passing(nn.Module):
    def forward(self, x):
        return torch.where(x[:, :1] > 0, x * 2, x)


def build():
    return Passing().eval()


def cases():
    return [("some", {"x": torch.tensor([[1.0, 2.0], [-1.0, 3.0], [2.0, -1.0]])})]
