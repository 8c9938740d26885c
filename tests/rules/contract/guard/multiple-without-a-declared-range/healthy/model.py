"""No range is declared, and the module serves every fourth batch only: that becomes the contract."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.view(2, 4, -1).sum(0)


def build():
    torch.manual_seed(0)
    return Model().eval()
