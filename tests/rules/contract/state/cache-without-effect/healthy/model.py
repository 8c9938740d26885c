"""forward keeps a mask for the next call, which finds it again or makes another: no answer depends on it."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None

    def forward(self, x):
        length = x.shape[1]
        if self.mask is None or self.mask.shape[0] != length:
            self.mask = torch.ones(length, length).tril()
        return self.mask @ x


def build():
    torch.manual_seed(0)
    return Model().eval()
