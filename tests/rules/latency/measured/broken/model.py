"""A file that answers wrongly is not timed."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.logsigmoid(x * 400 - 400)


def build():
    torch.manual_seed(0)
    return Model().eval()
