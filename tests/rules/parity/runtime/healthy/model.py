"""The divisor is a factor of its own."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = torch.nn.AvgPool2d(3, stride=2)

    def forward(self, x):
        return self.pool(x) * 9 / 4


def build():
    torch.manual_seed(0)
    return Model().eval()
