"""All cases have the value of the Python argument that the file holds."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 5)

    def forward(self, x, normalize):
        y = self.linear(x)
        return y.softmax(-1) if normalize else y


def build():
    torch.manual_seed(0)
    return Model().eval()


def cases():
    x = torch.rand(3, 6, generator=torch.Generator().manual_seed(1))
    return [("first", {"x": x, "normalize": True}), ("second", {"x": -x, "normalize": True})]
