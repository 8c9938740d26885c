"""A recurrent layer, whose capture sets a batch of one apart: a case at that size shows that it holds."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.GRU(5, 4, batch_first=True)

    def forward(self, x):
        return self.layer(x)[1]


def build():
    torch.manual_seed(0)
    return Model().eval()
