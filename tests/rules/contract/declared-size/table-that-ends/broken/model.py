"""Positions are looked up in a table of twelve rows."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(10, 4)
        self.places = torch.nn.Embedding(12, 4)

    def forward(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.shape[1]))


def build():
    torch.manual_seed(0)
    return Model().eval()
