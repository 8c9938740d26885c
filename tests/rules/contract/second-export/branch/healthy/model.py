"""All lengths take one way."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum(1) / x.shape[1]


def build():
    torch.manual_seed(0)
    return Model().eval()
