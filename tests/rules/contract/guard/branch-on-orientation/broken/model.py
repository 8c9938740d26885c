"""The branch of the upright example is frozen in; images that lie get it too."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        if x.shape[2] >= x.shape[3]:
            return x.amax(2).sum(-1)
        return x.amax(3).sum(-1)


def build():
    torch.manual_seed(0)
    return Model().eval()
