"""Layers that only the CPU can run, on a target that is another provider."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 900)
        self.second = torch.nn.Linear(900, 900)

    def forward(self, x):
        return self.second(self.first(x).relu())


def build():
    torch.manual_seed(0)
    return Model().eval()
