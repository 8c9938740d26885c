"""The square root of a size is a Python number of the example's size."""

import math

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum(1) / math.sqrt(x.shape[1])


def build():
    torch.manual_seed(0)
    return Model().eval()
