"""A custom operator that no exporter was told of."""

import torch


@torch.library.custom_op("shop::soften", mutates_args=())
def soften(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x)


@soften.register_fake
def _(x):
    return torch.empty_like(x)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 5)

    def forward(self, x):
        return soften(self.linear(x))


def make_model():
    torch.manual_seed(0)
    return Model().eval()


def make_inputs():
    return [("example", {"x": torch.linspace(-1, 1, 18).reshape(3, 6)})]


def export_kwargs():
    return {"dynamic_shapes": {"x": {0: torch.export.Dim("batch", min=1, max=4)}}}
