"""A query that sees no key is noticed, in whatever way attention is written."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from onnx_ci.export.sight import is_blind
from onnx_ci.export.types import Call


class Attention(torch.nn.Module):
    def __init__(self, how, *, causal=True):
        super().__init__()
        self.how, self.causal = how, causal

    def forward(self, x, keep):
        seen = keep[:, None, None].bool()
        if self.causal:
            seen = seen & torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        h = x[:, None]
        if self.how == "fused":
            return F.scaled_dot_product_attention(h, h, h, attn_mask=seen)
        lowest = {"infinity": float("-inf"), "finite": torch.finfo(x.dtype).min, "old": -1e4}[self.how]
        return torch.where(seen, h @ h.transpose(-1, -2), lowest).softmax(-1) @ h


@pytest.mark.parametrize("how", ["fused", "infinity", "finite", "old"])
def test_a_causal_query_before_the_first_token_is_blind(how):
    x = torch.randn(2, 4, 8)
    left, right = torch.tensor([[0, 1, 1, 1], [1, 1, 1, 1]]), torch.tensor([[1, 1, 1, 0], [1, 0, 0, 1]])
    assert is_blind(Attention(how), Call((x, left), {}))
    assert not is_blind(Attention(how), Call((x, right), {}))
    assert not is_blind(Attention(how, causal=False), Call((x, left), {}))


def test_a_module_that_raises_is_not_blind():
    assert not is_blind(Attention("fused"), Call((torch.randn(2, 4, 8), torch.ones(2, 3)), {}))
