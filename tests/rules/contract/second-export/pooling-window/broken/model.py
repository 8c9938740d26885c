"""The window of a fixed grid is computed for the example's size, and kept."""

import torch
from torch.nn import functional as F


class Model(torch.nn.Module):
    def forward(self, x):
        return F.adaptive_avg_pool2d(x, (4, 4))


def build():
    torch.manual_seed(0)
    return Model().eval()
