"""The tail of log-sigmoid: the file takes the logarithm of zero."""

import torch
from torch.nn import functional as F


class Model(torch.nn.Module):
    def forward(self, x):
        return F.logsigmoid(x)


def build():
    torch.manual_seed(0)
    return Model().eval()


def cases():
    ordinary = torch.rand(3, 6, generator=torch.Generator().manual_seed(1))
    return [("ordinary", {"x": ordinary}), ("special", {"x": torch.full((3, 6), -200.0)})]
