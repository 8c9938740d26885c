"""No range is declared, and the module serves two rows and more: that becomes the contract."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x[1:] - x[:-1]


def build():
    torch.manual_seed(0)
    return Model().eval()
