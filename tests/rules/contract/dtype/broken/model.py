"""Token ids are exported as int64."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)

    def forward(self, ids):
        return self.table(ids).mean(1)


def build():
    torch.manual_seed(0)
    return Model().eval()


def cases():
    return [("sentence", {"ids": torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 0]])})]
