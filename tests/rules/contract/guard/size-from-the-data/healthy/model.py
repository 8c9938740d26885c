"""Sizes that only the data tell: what is positive, and as many columns as are asked for."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, count):
        first = int(count.item())
        torch._check(first >= 0)
        torch._check(first <= x.shape[1])
        return torch.nonzero(x > 0), x[:, :first]


def build():
    torch.manual_seed(0)
    return Model().eval()


def cases():
    x = torch.rand(3, 6, generator=torch.Generator().manual_seed(1)) - 0.5
    return [("two", {"x": x, "count": torch.tensor(2)}), ("three", {"x": -x, "count": torch.tensor(3)})]
