"""The square root is taken of a tensor."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum(1) / torch.ones_like(x).sum(1).sqrt()


def build():
    torch.manual_seed(0)
    return Model().eval()
