"""How far a tensor of the adapted module is from the original's, and which output of one is which of the other."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, Literal

import torch

from onnx_ci.export.oracle import lift
from onnx_ci.export.types import Outputs

Kind = Literal["within", "gained", "beyond", "lost"]
"""Within the limit; finite in the adapted module only; beyond the limit; finite in the original only."""
_ORDER: tuple[Kind, ...] = ("within", "gained", "beyond", "lost")
_MOST_MATCHES = 5000


@dataclass(frozen=True, slots=True)
class Gap:
    """The largest absolute difference of two tensors of one shape.

    Attributes:
        figure: Over the places where both are finite.
        limit: What it may be.
        peak: The largest magnitude of the original's.
        at: The index of the largest difference, or of the first place where only one is finite.
    """

    kind: Kind
    figure: float
    limit: float
    peak: float
    at: list[int]
    original: float
    adapted: float

    @property
    def rank(self) -> tuple[int, float]:
        """By how bad it is."""
        used = self.figure / self.limit if self.limit else math.inf if self.figure else 0.0
        return _ORDER.index(self.kind), used

    def __str__(self) -> str:
        if self.kind in ("lost", "gained"):
            return f"{self.original:.6g} in the original and {self.adapted:.6g} once adapted at {self.at}"
        return f"{self.figure:.3g} apart at {self.at} (limit {self.limit:.2g})"


def gap(original: torch.Tensor, adapted: torch.Tensor, relative: float, floor: float) -> Gap:
    """Compares two tensors of one shape; integers and booleans among themselves exactly.

    Args:
        original: Of the original module.
        adapted: Of the adapted one.
        relative: What a difference may be in units of the original's largest magnitude.
        floor: What it may be besides.
    """
    exact = not (inexact(original) or inexact(adapted))
    one, other = (real(lift(value.detach())).double() for value in (original, adapted))
    if not one.numel():
        return Gap("within", 0.0, floor, 0.0, [], 0.0, 0.0)
    finite, also = torch.isfinite(one), torch.isfinite(other)
    both = finite & also
    apart = (original.long() - adapted.long()).double() if exact else one - other
    difference = torch.where(both, apart.abs(), 0.0)
    peak = float(torch.where(finite, one.abs(), 0.0).max())
    limit = 0.0 if exact else relative * peak + floor
    figure = float(difference.max())
    kind: Kind = "within" if figure <= limit else "beyond"
    odd = ~both & ~((one == other) | (torch.isnan(one) & torch.isnan(other)))
    place = difference
    if bool(odd.any()):
        lost = odd & (finite | torch.isnan(other))
        kind = "lost" if bool(lost.any()) else "gained" if kind == "within" else kind
        if kind != "beyond":
            place = (lost if kind == "lost" else odd).double()
    flat = int(place.argmax())
    index = [int(step) for step in torch.unravel_index(torch.tensor(flat), one.shape)]
    values = one.reshape(-1)[flat].item(), other.reshape(-1)[flat].item()
    return Gap(kind, figure, limit, peak, index[: original.dim()], *values)


def match(original: Outputs, adapted: Outputs) -> list[tuple[int, int]]:
    """Which output of the original is which of the adapted module: by key, by order, or as they fit best in order.

    An adaptation often drops outputs, such as those of heads that only training reads; so each of the fewer is one of
    the more.
    """
    common = [key for key in adapted.keys if key and key in original.keys]
    if common:
        return [(original.keys.index(key), adapted.keys.index(key)) for key in common]
    few, many = sorted((len(original.values), len(adapted.values)))
    first = len(original.values) <= len(adapted.values)
    if few == many or math.comb(many, few) > _MOST_MATCHES:
        return [(at, at) for at in range(few)]
    orders = [tuple(zip(range(few), chosen, strict=True)) for chosen in itertools.combinations(range(many), few)]
    pairs = [[(one, other) if first else (other, one) for one, other in order] for order in orders]
    return min(pairs, key=lambda order: _misfit(original, adapted, order))


def as_tensor(value: Any) -> torch.Tensor | None:
    """A tensor or a number as a tensor; None for all else."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    return torch.tensor(value, dtype=torch.float64) if isinstance(value, (bool, int, float)) else None


def _misfit(original: Outputs, adapted: Outputs, order: list[tuple[int, int]]) -> tuple[int, float]:
    shapes, apart = 0, 0.0
    for one, other in order:
        first, second = as_tensor(original.values[one]), as_tensor(adapted.values[other])
        if first is None or second is None or first.shape != second.shape:
            shapes += 1
        else:
            apart += gap(first, second, 0.0, 0.0).figure
    return shapes, apart


def inexact(value: torch.Tensor) -> bool:
    """Whether its values are rounded: floating or complex ones."""
    return value.dtype.is_floating_point or value.dtype.is_complex


def real(value: torch.Tensor) -> torch.Tensor:
    """A complex tensor as pairs of real numbers in a last axis; another one as it is."""
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
