"""Two branches that give the same numbers: the graph is the example's, and right everywhere."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        if x.shape[1] > 8:
            return x * 2
        return x + x


def build():
    torch.manual_seed(0)
    return Model().eval()
