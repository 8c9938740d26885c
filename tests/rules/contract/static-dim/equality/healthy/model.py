"""A size in arithmetic stays a size."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * x.shape[0]


def build():
    torch.manual_seed(0)
    return Model().eval()
