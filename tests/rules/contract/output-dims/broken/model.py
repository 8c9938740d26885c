"""The exporter writes the time axis of an LSTM's output as the example's number."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.LSTM(5, 4, batch_first=True)

    def forward(self, x):
        return self.layer(x)[0]


def build():
    torch.manual_seed(0)
    return Model().eval()
