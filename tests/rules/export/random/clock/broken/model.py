"""The answer hangs on the time of day: the file has that of its export."""

import time

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * (1 + time.time() // 3000 % 5)


def build():
    return Model().eval()
