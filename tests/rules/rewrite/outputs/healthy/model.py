import torch.nn.functional as F
from torch import nn


class Original(nn.Module):
    def forward(self, x):
        return F.adaptive_avg_pool2d(x, (2, round(2 * x.shape[3] / x.shape[2])))


class Adapted(nn.Module):
    def __init__(self, height, width):
        super().__init__()
        self.grid = 2, round(2 * width / height)

    def forward(self, x):
        return F.adaptive_avg_pool2d(x, self.grid)


def original():
    return Original().eval()


def build(height, width):
    return Adapted(height, width).eval()
