"""Two blocks; the second pools with a divisor of its own, which the exporter ignores."""

import torch


class Block(torch.nn.Module):
    def __init__(self, inside, divisor=None):
        super().__init__()
        self.conv = torch.nn.Conv2d(inside, 4, 3, padding=1)
        self.divisor = divisor

    def forward(self, x):
        y = torch.nn.functional.gelu(self.conv(x))
        return torch.nn.functional.avg_pool2d(y, 2, divisor_override=self.divisor)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.Sequential(Block(3), Block(4, divisor=3))
        self.head = torch.nn.Linear(4, 5)

    def forward(self, x):
        return self.head(self.blocks(x).mean((2, 3)))


def build():
    torch.manual_seed(0)
    return Model().eval()
