"""The number of a bucket by floor division: at exact multiples the file gives the next one; no case is near any."""

import torch


class Model(torch.nn.Module):
    def forward(self, seconds):
        return torch.div(seconds, 0.1, rounding_mode="floor").long()


def build():
    return Model().eval()


def cases():
    return [("inside", {"seconds": torch.tensor([0.05, 0.47, 1.26, 2.33, 3.18, 4.61, 5.04, 5.77])})]
