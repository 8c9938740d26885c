"""A branch on a sum: the export can't know which way to go."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 5)

    def forward(self, x):
        y = self.linear(x)
        if y.sum() > 0:
            return y
        return -y


def build():
    torch.manual_seed(0)
    return Model().eval()
