"""The exporter writes a window as wide as the example: ONNX Runtime lays it on all of a narrower picture, too."""

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, images):
        return F.adaptive_avg_pool2d(images, (None, 1))


def build():
    return Model().eval()
