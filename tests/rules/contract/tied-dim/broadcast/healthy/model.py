"""Every row with every other: the two batches stay apart."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        return x[:, None] + y


def build():
    torch.manual_seed(0)
    return Model().eval()
