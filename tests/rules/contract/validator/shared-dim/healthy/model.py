"""A mask for each row, as declared."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, mask):
        return (x * mask).sum(1)


def build():
    return Model().eval()


def cases():
    x = torch.arange(10.0).reshape(2, 5)
    return [
        ("three", {"x": x[:1].repeat(3, 1), "mask": torch.ones(3, 5)}),
        ("two", {"x": x, "mask": torch.ones(2, 5)}),
    ]
