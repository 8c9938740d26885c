"""A torch whose export lacks an option that own capture needs, as older ones do."""

import inspect

import torch

NEEDED = "prefer_deferred_runtime_asserts_over_guards"


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 5)

    def forward(self, x):
        return self.linear(x)


def build():
    whole = inspect.signature(torch.export.export)
    kept = [parameter for name, parameter in whole.parameters.items() if name != NEEDED]
    torch.export.export.__signature__ = whole.replace(parameters=kept)
    torch.manual_seed(0)
    return Model().eval()
