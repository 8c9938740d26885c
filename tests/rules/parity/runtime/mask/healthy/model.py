"""Causal attention over padded tokens."""

import torch
from torch.nn import functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(8, 8) for _ in range(3))

    def forward(self, tokens, keep):
        seen = keep.bool()
        causal = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()
        q, k, v = (one(tokens)[:, None] for one in (self.q, self.k, self.v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=causal & seen[:, None, None])


def build():
    torch.manual_seed(7)
    return Model().eval()
