"""Shares of a sum: the exporter's optimizer takes the epsilon for zero, and an empty histogram becomes NaN."""

from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x / (x.sum(-1, keepdim=True) + 1e-8)


def build():
    return Model().eval()
