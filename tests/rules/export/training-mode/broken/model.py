"""eval() is forgotten: dropout is drawn in the reference, and stays in the file."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 5)
        self.dropout = torch.nn.Dropout(0.5)
        self.second = torch.nn.Linear(5, 4)

    def forward(self, x):
        return self.second(self.dropout(self.first(x)).relu())


def build():
    torch.manual_seed(0)
    return Model()
