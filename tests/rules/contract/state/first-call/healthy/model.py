"""Each input's own mean is taken."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x - x.mean()


def build():
    return Model().eval()
