"""A pool with a divisor of its own, which the exporter ignores."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = torch.nn.AvgPool2d(3, stride=2, divisor_override=4)

    def forward(self, x):
        return self.pool(x)


def build():
    torch.manual_seed(0)
    return Model().eval()
