"""A dynamic dim without a declared range."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * torch.arange(x.shape[0], dtype=x.dtype)[:, None]


def build():
    torch.manual_seed(0)
    return Model().eval()
