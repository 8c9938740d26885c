"""The exporter froze a length that was left to it; a case of the user's has another."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        total = x[:, 0]
        for step in range(1, x.shape[1]):
            total = torch.tanh(total + x[:, step])
        return total


def make_model():
    return Model().eval()


def make_inputs():
    draw = torch.Generator().manual_seed(3)
    return [(f"length {n}", {"x": torch.randn(2, n, 6, generator=draw)}) for n in (7, 12)]


def export_kwargs():
    return {"dynamic_shapes": {"x": {1: torch.export.Dim.AUTO}}}
