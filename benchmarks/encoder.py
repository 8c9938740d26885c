"""The model of `contract.py`: a transformer encoder that classifies texts, batch and length dynamic."""

from __future__ import annotations

import torch
from torch import nn


class Block(nn.Module):
    """Attention and a feed-forward, each behind a norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[batch, length, width]`` to the same."""
        batch, length, width = x.shape
        qkv = self.qkv(self.before_attention(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(query, key, value)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.before_feed(x))


class Encoder(nn.Module):
    """Words and places embedded, blocks, a head on the first token."""

    def __init__(self, words: int, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(512, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """``[batch, length]`` to ``[batch, 2]``."""
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.head(self.norm(self.blocks(self.words(ids) + self.places(places)))[:, 0])


def build(words: int, width: int, depth: int, heads: int) -> nn.Module:
    """The entrypoint."""
    torch.manual_seed(0)
    return Encoder(words, width, depth, heads).eval()
