"""A question for one size freezes the batch to it."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        if x.shape[0] == 2:
            return x * 2
        return x


def build():
    torch.manual_seed(0)
    return Model().eval()
