"""A submodule is in training mode that computes the same in both."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU())
        self.second = torch.nn.Linear(5, 4)

    def forward(self, x):
        return self.second(self.first(x))


def build():
    torch.manual_seed(0)
    model = Model().eval()
    model.first.train()
    return model
