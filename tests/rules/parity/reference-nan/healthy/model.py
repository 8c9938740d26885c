"""The user's own case has a value."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.log(x.clamp(min=1e-6))


def build():
    torch.manual_seed(0)
    return Model().eval()


def cases():
    ordinary = torch.rand(3, 6, generator=torch.Generator().manual_seed(1))
    return [("ordinary", {"x": ordinary}), ("special", {"x": -torch.ones(3, 6)})]
