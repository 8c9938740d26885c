"""The features are fixed in the file, as the config says."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2


def make_model():
    return Model().eval()


def make_inputs():
    return [("three", {"x": torch.ones(3, 6)})]


def export_kwargs():
    return {"dynamic_shapes": {"x": {0: torch.export.Dim("batch")}}}
