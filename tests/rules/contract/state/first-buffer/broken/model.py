"""A norm that takes its statistic from its first input, and keeps it in a buffer that no checkpoint was loaded into."""

import torch


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("known", torch.tensor(0.0))

    def forward(self, x):
        mean = torch.where(self.known > 0, self.mean, x.mean(0))
        self.mean.copy_(mean)
        self.known.fill_(1.0)
        return x - mean


def build():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 6), Norm()).eval()
