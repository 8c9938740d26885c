"""Attention and rotary embeddings, as opset 23 and later define them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onnx_ci.twin.registry import Call, kernel
from onnx_ci.twin.values import Array


@kernel("Attention")
def attention(
    call: Call,
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    filled: Array | None = None,
) -> tuple[Any, ...]:
    """Scaled dot products; with a cache, groups of heads, causal and sliding masks, and a cap on the scores."""
    flat = q.ndim == 3
    if flat:
        q = _heads(q, call["q_num_heads"])
        k, v = (_heads(x, call["kv_num_heads"]) for x in (k, v))
    keys = k if past_key is None else np.concatenate([past_key, k], axis=2)
    values = v if past_value is None else np.concatenate([past_value, v], axis=2)
    bias = _bias(call, q.shape[2], keys.shape[2], mask, past_key, filled)
    times = q.shape[1] // keys.shape[1]
    wide_keys, wide_values = (x if times == 1 else np.repeat(x, times, axis=1) for x in (keys, values))
    scale = 1 / math.sqrt(q.shape[3]) if call["scale"] is None else call["scale"]
    scores = (q * scale) @ wide_keys.swapaxes(2, 3)
    shown = scores
    if call["softcap"]:
        scores = call["softcap"] * np.tanh(scores / call["softcap"])
        shown = scores if call["qk_matmul_output_mode"] == 1 else shown
    weights = _softmax(scores + bias, bias)
    made = weights @ wide_values
    if flat:
        made = made.swapaxes(1, 2).reshape(made.shape[0], made.shape[2], -1)
    mode = call["qk_matmul_output_mode"]
    shown = scores + bias if mode == 2 else weights if mode == 3 else scores if mode == 1 else shown
    if mode == 0 and call["softcap"]:
        shown = scores  # the definition gives the capped scores in either mode
    return made, keys, values, shown


def _heads(x: Array, count: int) -> Array:
    """(N, S, H·D) → (N, H, S, D)."""
    return x.reshape(x.shape[0], x.shape[1], count, -1).swapaxes(1, 2)


def _bias(call: Call, queries: int, keys: int, mask: Array | None, past: Array | None, filled: Array | None) -> Array:
    """What is added to the scores: the mask, and -Inf where a query may not look."""
    allowed = np.ones((queries, keys), np.bool_)
    if past is not None:
        first = np.array(past.shape[2])
    else:
        first = np.array(0) if filled is None else (filled.reshape(-1, 1, 1, 1) - queries)
    ahead = np.arange(keys) - (np.arange(queries)[:, None] + first)  # how far a key lies after its query
    if call["is_causal"]:
        allowed = allowed & (ahead <= 0)
    left, right = (-1 if call[name] is None else call[name] for name in ("left_window_size", "right_window_size"))
    allowed = allowed & (-ahead <= left) if left >= 0 else allowed
    allowed = allowed & (ahead <= right) if right >= 0 else allowed
    if filled is not None:
        allowed = allowed & (np.arange(keys) < filled.reshape(-1, 1, 1, 1))
    bias = np.where(allowed, 0.0, -np.inf)
    if mask is None:
        return bias
    short = keys - mask.shape[-1]
    given = np.where(mask, 0.0, -np.inf) if mask.dtype == np.bool_ else mask
    given = np.pad(given, [(0, 0)] * (mask.ndim - 1) + [(0, short)], constant_values=-np.inf) if short > 0 else given
    return bias + given


def _softmax(scores: Array, bias: Array) -> Array:
    """Zero for a query that may look nowhere."""
    nowhere = np.all(np.isneginf(bias), axis=-1, keepdims=True)
    top = np.max(scores, axis=-1, keepdims=True)
    made = np.exp(scores - np.where(np.isneginf(top), 0.0, top))
    total = np.sum(made, axis=-1, keepdims=True)
    return np.where(nowhere, 0.0, made / np.where(total == 0, 1.0, total))


@kernel("RotaryEmbedding")
def rotary(call: Call, x: Array, cos: Array, sin: Array, positions: Array | None = None) -> Array:
    """Rotates pairs of features, which lie half the width apart or side by side."""
    heads = x.swapaxes(1, 2) if x.ndim == 4 else x.reshape(*x.shape[:2], call["num_heads"], -1)
    width = call["rotary_embedding_dim"] or heads.shape[3]
    turned, rest = heads[..., :width], heads[..., width:]
    cos, sin = (table if positions is None else table[positions] for table in (cos, sin))
    cos, sin = cos[:, :, None], sin[:, :, None]
    pairs = (turned[..., ::2], turned[..., 1::2]) if call["interleaved"] else np.split(turned, 2, axis=-1)
    first, second = pairs
    real, imaginary = cos * first - sin * second, sin * first + cos * second
    if call["interleaved"]:
        turned = np.stack([real, imaginary], axis=-1).reshape(turned.shape)
    else:
        turned = np.concatenate([real, imaginary], axis=-1)
    made = np.concatenate([turned, rest], axis=-1)
    return made.swapaxes(1, 2) if x.ndim == 4 else made.reshape(x.shape)
