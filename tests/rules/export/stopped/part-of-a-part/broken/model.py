"""Deep inside, a branch on how many elements a mask leaves."""

import torch


class Prune(torch.nn.Module):
    def forward(self, x):
        kept = x[x > 0]
        return x + kept.mean() if kept.shape[0] > 2 else x


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
