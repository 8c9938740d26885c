"""output_names list the keys of the dict in their order."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 5)

    def forward(self, x):
        y = self.linear(x)
        return {"boxes": y[:, :4], "scores": y[:, 1:]}


def make_model():
    torch.manual_seed(0)
    return Model().eval()


def make_inputs():
    generator = torch.Generator().manual_seed(1)
    return [("example", {"x": torch.rand(3, 6, generator=generator)})]


def export_kwargs():
    return {"output_names": ["boxes", "scores"]}
