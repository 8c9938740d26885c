import torch
from torch import nn


class Original(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 4)

    def forward(self, x):
        return self.linear(x).relu()


class Adapted(Original):
    def forward(self, x):
        return self.linear(x).clamp(min=0)


def original():
    torch.manual_seed(0)
    return Original().eval()


def build():
    torch.manual_seed(1)
    return Adapted().eval()
