"""Weight norms at a fresh start: what the optimizer folds has the bytes of the weights that go in, and is rounded."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


def build():
    torch.manual_seed(0)
    return nn.Sequential(
        weight_norm(nn.Conv1d(4, 16, 3)),
        nn.GELU(),
        weight_norm(nn.Conv1d(16, 16, 3, groups=4), dim=2),
        nn.GELU(),
        weight_norm(nn.Linear(28, 8)),
    ).eval()
