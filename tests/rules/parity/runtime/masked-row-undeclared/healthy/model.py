"""A query that may look at nothing gives zeros, since forward says so."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(8, 8) for _ in range(3))

    def forward(self, tokens, keep):
        q, k, v = (one(tokens)[:, None] for one in (self.q, self.k, self.v))
        scores = (q @ k.transpose(-1, -2) / 8**0.5).masked_fill(~keep[:, None], -1e9)
        return scores.softmax(-1) @ v * keep[:, None].any(-1, keepdim=True)


def build():
    torch.manual_seed(7)
    return Model().eval()


def cases():
    tokens = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(8))
    return [("full", {"tokens": tokens, "keep": torch.ones(2, 5, 5, dtype=torch.bool)})]
