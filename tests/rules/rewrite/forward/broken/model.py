import torch.nn.functional as F
from torch import nn


class Original(nn.Module):
    def forward(self, x):
        return F.adaptive_avg_pool2d(x, (3, 3))


class Adapted(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x, kernel_size=4, stride=2)


def original():
    return Original().eval()


def build():
    return Adapted().eval()
