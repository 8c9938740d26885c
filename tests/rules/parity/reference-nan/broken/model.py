"""The user's own case gives NaN on both sides, which proves nothing."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.log(x)


def build():
    torch.manual_seed(0)
    return Model().eval()


def cases():
    ordinary = torch.rand(3, 6, generator=torch.Generator().manual_seed(1))
    return [("ordinary", {"x": ordinary}), ("special", {"x": -torch.ones(3, 6)})]
