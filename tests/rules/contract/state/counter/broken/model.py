"""A buffer that forward counts up: the file answers every call like the first."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls.add_(1)
        return x + self.calls


def build():
    torch.manual_seed(0)
    return Model().eval()
