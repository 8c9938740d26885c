"""No range is declared, and the file holds for 8 at most; a case of the user's is longer."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        if x.shape[1] > 8:
            return x.sum(1)
        return x.mean(1)


def make_model():
    return Model().eval()


def make_inputs():
    draw = torch.Generator().manual_seed(3)
    return [(f"length {n}", {"x": torch.randn(2, n, 6, generator=draw)}) for n in (7, 12)]


def export_kwargs():
    return {"dynamic_shapes": {"x": {1: torch.export.Dim.AUTO}}}
