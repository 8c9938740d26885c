"""A unit vector with an epsilon that is too large to be taken for zero."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x / (torch.linalg.vector_norm(x, dim=-1, keepdim=True) + 1e-6)


def build():
    return Model().eval()
