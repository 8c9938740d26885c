"""The file's inputs come as the config promises."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 5)

    def forward(self, tokens, types):
        return self.linear(tokens) - types[:, :5]


def make_model():
    torch.manual_seed(0)
    return Model().eval()


def make_inputs():
    generator = torch.Generator().manual_seed(1)
    return [
        (
            "example",
            {
                "tokens": torch.rand(3, 6, generator=generator),
                "types": torch.rand(3, 6, generator=generator),
            },
        )
    ]


def export_kwargs():
    return {}
