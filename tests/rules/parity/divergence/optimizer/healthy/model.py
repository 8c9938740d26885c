"""A convolution and a batch norm that one convolution can stand for."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 1, 1), torch.nn.BatchNorm2d(1, eps=1e-5)
        with torch.no_grad():
            self.conv.weight.copy_(torch.tensor([3.0, -1.0, 2.0]).reshape(1, 3, 1, 1))
            self.conv.bias.zero_()
            self.norm.weight.fill_(2.0)
            self.norm.running_var.fill_(1.0)

    def forward(self, x):
        return self.norm(self.conv(x))


def build():
    return Model().eval()
