"""Every second step is given back, the first one included: of an odd number, half of it rounded up."""

from torch import nn


class Halved(nn.Module):
    def forward(self, x):
        return x[:, ::2].tanh()


def build():
    return Halved().eval()
