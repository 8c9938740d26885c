"""numpy makes a Python number of a size."""

import numpy as np
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.reshape(int(np.prod(x.shape[:1])), 2, 3).sum(1)


def build():
    torch.manual_seed(0)
    return Model().eval()
