"""A query that may look at nothing: PyTorch gives zeros, the file the mean of all values."""

import torch
from torch.nn import functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(8, 8) for _ in range(3))

    def forward(self, tokens, keep):
        q, k, v = (one(tokens)[:, None] for one in (self.q, self.k, self.v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None])


def build():
    torch.manual_seed(7)
    return Model().eval()


def cases():
    tokens = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(8))
    return [("full", {"tokens": tokens, "keep": torch.ones(2, 5, 5, dtype=torch.bool)})]
