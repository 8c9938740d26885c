"""One way to double."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2


def build():
    torch.manual_seed(0)
    return Model().eval()
