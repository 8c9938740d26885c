"""Whether a difference is one of order among equals: what sort, top-k and argmax do with values that tie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from onnx_ci.export.gaps import as_tensor, real
from onnx_ci.export.side import Side
from onnx_ci.export.types import NamedInputs

_ORDERING = {"topk", "sort", "argsort", "msort", "argmax", "argmin", "max", "min", "kthvalue", "median"}
_NUDGE = 1e-9
_DRAWS = 6
_UNTOUCHED = 0.1
"""The share of the differing places that no draw need reach: of two that tie, one in 64 stays in order six times."""


class _Nudge(TorchFunctionMode):
    """Moves what is put in order by a billionth of its largest magnitude."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Answers for one function of torch."""
        if getattr(func, "__name__", "") in _ORDERING and args and isinstance(args[0], torch.Tensor):
            value = args[0]
            if value.dtype.is_floating_point and value.numel():
                drawn = torch.rand(value.shape, generator=self._generator, dtype=torch.float64).to(value.dtype)
                size = float(torch.nan_to_num(value.detach().abs(), 0.0, 0.0, 0.0).max()) or 1.0
                args = (value + _NUDGE * size * drawn, *args[1:])
        return func(*args, **(kwargs or {}))


def explains(side: Side, inputs: NamedInputs, at: int, value: torch.Tensor, apart: torch.Tensor, limit: float) -> bool:
    """Whether an output of one module is no more settled than the difference from the other's.

    Args:
        side: The module.
        inputs: The case.
        at: Position of the output.
        value: What it is.
        apart: Where the two modules differ, complex places as pairs.
        limit: From when on a value counts as another one.
    """
    touched = torch.zeros_like(apart)
    for draw in range(_DRAWS):
        with _Nudge(draw):
            again = side.exact(inputs)
        other = as_tensor(again.values[at])
        if other is None or other.shape != value.shape:
            return False
        touched |= (real(other).double() - real(value).double()).abs() > limit
    return int((apart & ~touched).sum()) <= _UNTOUCHED * int(apart.sum())
