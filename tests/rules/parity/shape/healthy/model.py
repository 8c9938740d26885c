"""Half of a size as a whole number."""

import torch
from torch.nn import functional as F


class Model(torch.nn.Module):
    def forward(self, x):
        height, width = x.shape[2] // 2, x.shape[3] // 2
        return F.interpolate(x, size=(height, width))


def build():
    torch.manual_seed(0)
    return Model().eval()


def cases():
    return [(f"{high} by {wide}", {"x": torch.ones(1, 2, high, wide)}) for high, wide in ((16, 12), (10, 18))]
