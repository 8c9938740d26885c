"""Its weights come from a seed."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.rand(6))

    def forward(self, x):
        return x * self.gain


def build():
    torch.manual_seed(0)
    return Model().eval()
