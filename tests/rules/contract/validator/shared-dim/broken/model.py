"""One mask for all rows: PyTorch and the runtime broadcast it, the declaration says one for each."""

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
        ("two", {"x": x, "mask": torch.ones(1, 5)}),
    ]
