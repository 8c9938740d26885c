"""GELU as the exporter translates it."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return nn.functional.gelu(x)


def make_model():
    return Model().eval()


def make_inputs():
    torch.manual_seed(0)
    return [("large", {"x": 4.5 + 2 * torch.rand(2, 64)})]


def export_kwargs():
    return {"dynamic_shapes": {"x": {0: torch.export.Dim("batch", min=1, max=8)}}}
