"""Both ways are in the graph, and the sum picks one."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 5)

    def forward(self, x):
        y = self.linear(x)
        return torch.where(y.sum() > 0, y, -y)


def build():
    torch.manual_seed(0)
    return Model().eval()
