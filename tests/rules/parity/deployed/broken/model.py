"""A layer that is scaled down and up again, through numbers that float32 has as denormals only."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(6, 5) * 1e-39)

    def forward(self, x):
        return (x @ self.weight) * 1e37


def build():
    torch.manual_seed(0)
    return Model().eval()
