"""Shares of a sum, kept from zero in a way that the exporter's optimizer leaves alone."""

from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x / x.sum(-1, keepdim=True).clamp(min=1e-8)


def build():
    return Model().eval()
