"""A mean over the whole width needs no window."""

import torch


class Model(torch.nn.Module):
    def forward(self, images):
        return images.mean(-1, keepdim=True)


def build():
    return Model().eval()
