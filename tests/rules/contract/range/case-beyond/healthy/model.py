"""No range is declared, and the file holds for all lengths."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum(1) / x.shape[1]


def make_model():
    return Model().eval()


def make_inputs():
    draw = torch.Generator().manual_seed(3)
    return [(f"length {n}", {"x": torch.randn(2, n, 6, generator=draw)}) for n in (7, 12)]


def export_kwargs():
    return {"dynamic_shapes": {"x": {1: torch.export.Dim.AUTO}}}
