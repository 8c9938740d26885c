"""The same choice with all elements kept, and those left out counted as 0."""

import torch


class Prune(torch.nn.Module):
    def forward(self, x):
        kept = x > 0
        count = kept.sum()
        mean = torch.where(kept, x, 0.0).sum() / torch.clamp(count, min=1)
        return torch.where(count > 2, x + mean, x)


class Block(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.linear, self.prune = torch.nn.Linear(6, 6), inner

    def forward(self, x):
        return self.prune(self.linear(x))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(torch.nn.ReLU()), Block(Prune())])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def build():
    torch.manual_seed(0)
    return Model().eval()
