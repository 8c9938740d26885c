"""The same kind of sum, without a loop in Python."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x.cumsum(1))[:, -1]


def build():
    torch.manual_seed(0)
    return Model().eval()
