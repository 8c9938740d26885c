import torch
import torch.nn.functional as F
from torch import nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(6, 6)

    def forward(self, x):
        return F.linear(self.linear(x).tanh(), self.linear.weight)


class Adapted(Tied):
    def forward(self, x):
        return self.linear(x).tanh() @ self.linear.weight.T


def original():
    return Tied().eval()


def build():
    return Adapted().eval()
