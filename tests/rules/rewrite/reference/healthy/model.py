import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(6, 4)

    def forward(self, x):
        return self.linear(x)


def original():
    return Model().eval()


def build():
    return Model().eval()
