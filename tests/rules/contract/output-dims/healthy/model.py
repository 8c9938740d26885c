"""The time axis of a linear layer's output stays a name."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(5, 4)

    def forward(self, x):
        return self.layer(x)


def build():
    torch.manual_seed(0)
    return Model().eval()
