import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(6, 6)

    def forward(self, x):
        return x * self.linear(x).sigmoid()


class Adapted(Gate):
    def forward(self, x):
        gate = self.linear(x)
        return x * torch.reciprocal(1 + torch.exp(-gate))


def original():
    return Gate().eval()


def build():
    return Adapted().eval()
