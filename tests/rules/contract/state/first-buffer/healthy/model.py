"""The statistic is in the buffer from the start, as a checkpoint brings it."""

import torch


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.full((6,), 0.25))

    def forward(self, x):
        return x - self.mean


def build():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 6), Norm()).eval()
