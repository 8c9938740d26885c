"""Its weights come from the system's own source of chance: no two loads give the same."""

import os

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.tensor(float(os.urandom(1)[0]) + os.urandom(1)[0] / 256))

    def forward(self, x):
        return x * self.gain


def build():
    torch.manual_seed(0)
    return Model().eval()
