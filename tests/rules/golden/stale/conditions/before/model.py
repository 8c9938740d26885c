"""The golden is accepted with these settings and this preprocessing."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 5)

    def forward(self, x):
        return self.linear(x)


def build(checkpoint):
    torch.manual_seed(0)
    return Model().eval()


def cases():
    return [("reviewed", {"x": torch.rand(3, 6, generator=torch.Generator().manual_seed(1))})]
