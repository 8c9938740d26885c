"""Every batch takes the same way."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x - x.mean(0)


def build():
    torch.manual_seed(0)
    return Model().eval()
