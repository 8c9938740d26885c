"""The noise is left out in eval mode."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 5)

    def forward(self, x):
        y = self.linear(x)
        return y + torch.randn(5) if self.training else y


def build():
    torch.manual_seed(0)
    return Model().eval()
