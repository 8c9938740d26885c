"""A unit vector of values that nobody declared: nobody said that silence arrives, and it becomes NaN."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x / (torch.linalg.vector_norm(x, dim=-1, keepdim=True) + 1e-8)


def build():
    return Model().eval()
