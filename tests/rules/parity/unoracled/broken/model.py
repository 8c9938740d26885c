"""A module that holds a lock can't be copied, so that there is none in float64."""

import threading

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 5)
        self.lock = threading.Lock()

    def forward(self, x):
        with self.lock:
            return self.linear(x)


def build():
    torch.manual_seed(0)
    return Model().eval()
