"""The count is handed in and out, so that the service carries it."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, calls):
        calls = calls + 1
        return x + calls, calls


def build():
    torch.manual_seed(0)
    return Model().eval()
