"""The mean over the whole picture has no window."""

import torch
from torch.nn import functional as F


class Model(torch.nn.Module):
    def forward(self, x):
        return F.adaptive_avg_pool2d(x, (1, 1))


def build():
    torch.manual_seed(0)
    return Model().eval()
