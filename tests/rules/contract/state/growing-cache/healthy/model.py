"""A mask that grows with the longest input so far, and notes that no answer depends on."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None
        self.last_shape = None
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.last_shape = x.shape
        self.calls += 1
        length = x.shape[1]
        if self.mask is None or self.mask.shape[0] < length:
            self.mask = torch.ones(length, length).tril()
        return self.mask[:length, :length] @ x


def build():
    return Model().eval()
