"""Whether a query of an attention sees no key at all: what comes of it is arbitrary, and kernels differ in it.

PyTorch's fused attention gives zeros, its plain softmax a mean of all values or NaN, and a runtime any of these.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from onnx_ci.export import arguments
from onnx_ci.export.state import preserved
from onnx_ci.export.types import Call

_SOFTMAX = {"aten::_softmax", "aten::_safe_softmax"}
_MASKS = {"attn_mask", "attn_bias"}
_HIDDEN = -5e3
"""Scores are never so low but by a mask: -1e4 of the older models, a dtype's lowest number, minus infinity."""


def is_blind(module: torch.nn.Module, call: Call) -> bool:
    """Whether some query of some attention sees nothing in this call; not where forward does not run under a watch."""
    watch = _Watch()
    with preserved(module), watch:
        arguments.call(module, call)
    return watch.found


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's own, not annotated
    """Looks at the scores that go into a softmax, and at the masks of fused attention."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.found:
            named = dict(zip((one.name for one in func._schema.arguments), args, strict=False)) | kwargs
            if func._schema.name in _SOFTMAX:
                self.found = _is_hidden(args[0], args[1])
            else:
                self.found = any(_is_hidden(named.get(name), -1) for name in _MASKS)
        return func(*args, **kwargs)


def _is_hidden(scores: Any, axis: int) -> bool:
    if not isinstance(scores, torch.Tensor) or not scores.numel() or not scores.dim():
        return False
    if scores.dtype == torch.bool:
        return not bool(scores.any(axis).all())
    return scores.dtype.is_floating_point and bool((scores.amax(axis) <= _HIDDEN).any())
