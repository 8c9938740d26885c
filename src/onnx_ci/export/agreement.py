"""Whether two runs of the same module gave the same, but for the last digits that threads may shuffle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from onnx_ci.export.kept import same_bits
from onnx_ci.export.types import Outputs

_LIMITS = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}


@dataclass(frozen=True, slots=True)
class Difference:
    """The worst output's difference; false when there is none.

    Attributes:
        relative: relL2 where it passes what threads explain; 0 otherwise.
        other: A difference that no norm measures: another shape, another integer, another error.
    """

    relative: float = 0.0
    other: str = ""

    def __bool__(self) -> bool:
        return bool(self.relative or self.other)

    def __str__(self) -> str:
        return self.other if not self.relative else f"relL2 {self.relative:.2g}"


def differ(one: Outputs, other: Outputs) -> Difference:
    """Compares two runs output by output."""
    if one.error != other.error:
        return Difference(other=f"it raised {one.error or other.error}")
    if len(one.values) != len(other.values):
        return Difference(other=f"{len(one.values)} and {len(other.values)} outputs")
    worst, said = 0.0, ""
    for at, (first, second) in enumerate(zip(one.values, other.values, strict=True)):
        found = _compare(first, second, f"output {one.keys[at] or at}")
        worst, said = max(worst, found.relative), said or found.other
    return Difference(worst, said)


def _compare(one: Any, other: Any, name: str) -> Difference:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        same = type(one) is type(other) and (one is other or bool(one == other))
        return Difference() if same else Difference(other=f"{name} is {one!r:.40} and {other!r:.40}")
    if one.shape != other.shape or one.dtype != other.dtype:
        return Difference(other=f"{name} has shape {list(one.shape)} and {list(other.shape)}")
    if same_bits(one, other):
        return Difference()
    if one.dtype.is_complex:
        return _compare(torch.view_as_real(one), torch.view_as_real(other), name)
    if not one.dtype.is_floating_point:
        return Difference(other=f"{name} has {int((one != other).sum())} other values")
    wide, reference = other.double(), one.double()
    finite = torch.isfinite(reference)
    if not torch.equal(finite, torch.isfinite(wide)):
        return Difference(other=f"{name} is finite at other places")
    error = (wide - reference)[finite].norm().item()
    size = reference[finite].norm().item()
    relative = error / size if size else math.inf if error else 0.0
    return Difference(relative) if relative > _LIMITS.get(one.dtype, 1e-2) else Difference()
