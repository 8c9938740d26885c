"""The time is taken for the log alone."""

import time

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        start = time.perf_counter()
        y = x * 2
        self.seconds = time.perf_counter() - start
        return y


def build():
    return Model().eval()
