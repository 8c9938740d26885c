"""Each case has the size of a variant."""

import torch


class Model(torch.nn.Module):
    def __init__(self, length):
        super().__init__()
        self.length = length
        self.linear = torch.nn.Linear(6, 5)

    def forward(self, x):
        return self.linear(x).sum(1) / self.length


def build(length):
    torch.manual_seed(0)
    return Model(length).eval()


def cases():
    return [(f"length {length}", {"x": torch.ones(3, length, 6) / length}) for length in (4, 7)]
