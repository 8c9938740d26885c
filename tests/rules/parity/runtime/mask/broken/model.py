"""Causal attention over padded tokens, whose mask goes wrong in the export: turned over, moved by one, left out."""

import torch
from torch.nn import functional as F


class Model(torch.nn.Module):
    def __init__(self, fault):
        super().__init__()
        self.fault = fault
        self.q, self.k, self.v = (torch.nn.Linear(8, 8) for _ in range(3))

    def forward(self, tokens, keep):
        seen = keep.bool()
        if torch.compiler.is_exporting():
            seen = {"inverted": ~seen, "shifted": seen.roll(1, 1), "dropped": seen | True}.get(self.fault, seen)
        causal = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()
        q, k, v = (one(tokens)[:, None] for one in (self.q, self.k, self.v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=causal & seen[:, None, None])


def build(fault=""):
    torch.manual_seed(7)
    return Model(fault).eval()
