"""Dim.AUTO leaves it to the exporter, and the batch stays dynamic."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * torch.arange(x.shape[0], dtype=x.dtype)[:, None]


def make_model():
    torch.manual_seed(0)
    return Model().eval()


def make_inputs():
    return [("example", {"x": torch.rand(3, 6, generator=torch.Generator().manual_seed(1))})]


def export_kwargs():
    return {"dynamic_shapes": {"x": {0: torch.export.Dim.AUTO}}}
