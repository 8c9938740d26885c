"""Padding to a multiple of eight is arithmetic with sizes, and no assumption."""

import torch
from torch.nn import functional as F


class Model(torch.nn.Module):
    def forward(self, x):
        missing = (8 - x.shape[1] % 8) % 8
        return F.pad(x, (0, 0, 0, missing)).reshape(1, -1, 8, 4).sum(2)


def build():
    torch.manual_seed(0)
    return Model().eval()
