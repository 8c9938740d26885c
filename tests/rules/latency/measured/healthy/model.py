"""A file that answers rightly is timed."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return -torch.nn.functional.softplus(400 - x * 400)


def build():
    torch.manual_seed(0)
    return Model().eval()
