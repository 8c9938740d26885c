import torch
from torch import nn


class Original(nn.Module):
    def forward(self, x):
        return x.cumsum(1)


class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(16, 16).tril())

    def forward(self, x):
        return self.mask[: x.shape[1], : x.shape[1]] @ x


def original():
    return Original().eval()


def build():
    return Adapted().eval()
