"""export_kwargs leave the features open, of which the config says that there are six."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2


def make_model():
    return Model().eval()


def make_inputs():
    return [("three", {"x": torch.ones(3, 6)})]


def export_kwargs():
    return {"dynamic_shapes": {"x": {0: torch.export.Dim("batch"), 1: torch.export.Dim("features")}}}
