"""Instance normalization of a picture without columns: PyTorch gives one back, ONNX Runtime reads where nothing is."""

from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm2d(4)

    def forward(self, images):
        return self.norm(images[..., : images.shape[-1] // 3])


def build():
    return Model().eval()
