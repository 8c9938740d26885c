"""Floor division of floats: exact multiples land in the next bucket."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return (x // 0.1).to(torch.int64)


def build():
    torch.manual_seed(0)
    return Model().eval()


def cases():
    ordinary = torch.rand(3, 6, generator=torch.Generator().manual_seed(1))
    return [("ordinary", {"x": ordinary}), ("special", {"x": torch.arange(1.0, 19.0).reshape(3, 6) / 10})]
