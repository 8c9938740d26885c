"""Dim.AUTO leaves it to the exporter, and the exporter freezes the batch: no promise is broken."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.stack([x[row] * row for row in range(x.shape[0])])


def make_model():
    torch.manual_seed(0)
    return Model().eval()


def make_inputs():
    return [("example", {"x": torch.rand(3, 6, generator=torch.Generator().manual_seed(1))})]


def export_kwargs():
    return {"dynamic_shapes": {"x": {0: torch.export.Dim.AUTO}}}
