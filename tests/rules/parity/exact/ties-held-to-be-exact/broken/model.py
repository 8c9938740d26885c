"""Scores that tie, and a config that holds every index to PyTorch's choice."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 40)

    def forward(self, x):
        scores = self.linear(x).round(decimals=1)
        picked = scores.topk(3)
        return picked.values, picked.indices


def build():
    torch.manual_seed(0)
    return Model().eval()
