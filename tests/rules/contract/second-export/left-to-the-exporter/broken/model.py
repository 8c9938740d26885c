"""Which dims vary was left to the exporter, which took the example's branch; a case of the user's takes the other."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        if x.shape[1] > 8:
            return x.sum(1)
        return x.mean(1)


def build():
    torch.manual_seed(0)
    return Model().eval()


def make_model():
    return build()


def make_inputs():
    draw = torch.Generator().manual_seed(3)
    return [(f"length {n}", {"x": torch.randn(2, n, 6, generator=draw)}) for n in (7, 12)]


def export_kwargs():
    return {"dynamic_shapes": {"x": {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}}}
