"""Cases of special values, where operators part that agree on ordinary ones: ties, exact multiples, ends, empty masks.

All inputs that take such values have them at once, those with a declared value domain apart from the others; the rest,
and the sizes, are the export example's.
Single elements and empties are sizes, and so among the boundary cases.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from onnx_ci.export import arguments, values
from onnx_ci.export.affordable import FREE_FLOPS
from onnx_ci.export.types import Declared, DeclaredInput, NamedInputs, RunCase
from onnx_ci.export.values import Array, Seen

MOST_CASES = 12
"""Of one model: those that are judged in full come first."""
_LEAST_CASES = 3
"""Of a model that takes its time."""
_NONFINITE = (("nan", "nan"), ("inf", "inf"), ("minus-inf", "-inf"))
_STEPS = (0.5, 0.1)
"""Of exact multiples: halves with the whole numbers, and tenths, which no float holds exactly."""


@dataclass(frozen=True, slots=True)
class _Input:
    """One tensor input with what its values may be, both ends included.

    Attributes:
        value: The example's.
        seen: In the user's cases and the example.
        levels: The two values of a mask, the unmasked one first; None for all else.
    """

    item: DeclaredInput
    value: torch.Tensor
    seen: list[Seen]
    low: float
    high: float
    levels: tuple[float, float] | None

    @property
    def declared(self) -> bool:
        item = self.item
        return item.values is not None or item.low is not None or item.high is not None or bool(item.nonfinite)

    @property
    def masks_queries(self) -> bool:
        """Whether an item of the mask has several rows."""
        axes, shape = self.item.axes, self.value.shape
        square = len(axes) == 2 and axes[0] == axes[1]
        return self.levels is not None and (square or (len(axes) > 2 and math.prod(shape[1:-1]) > 1))

    def holds(self, value: float) -> bool:
        known = self.item.values
        return self.low <= value <= self.high if known is None else value in known


Fill = Callable[[_Input], Array | torch.Tensor | float | None]
"""The values that a kind gives to an input; None where it has none of the kind."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of special values, and whether it makes elements equal that need not be; or hides a row."""

    name: str
    why: str
    fill: Fill
    ties: bool = False
    hides_row: bool = False


def most_of(flops: float) -> int:
    """How many of them a model can afford whose example takes so many floating-point operations; 0 stands for unknown.

    Each is one more call in both dtypes, and on every target.
    """
    return MOST_CASES if not flops else max(_LEAST_CASES, min(MOST_CASES, int(MOST_CASES * FREE_FLOPS / flops)))


def special_cases(
    promised: Declared, example: RunCase, user: Sequence[RunCase], rng: np.random.Generator
) -> list[RunCase]:
    """At most `MOST_CASES` cases, none of them twice.

    Inputs with a declared value domain come first: their cases are judged in full. Of the others the values keep to
    those seen, and their cases are `advisory`: nobody said that such values arrive.

    Args:
        promised: With the value domains.
        example: What the export ran on: the sizes of all of them.
        user: The user's cases, whose values show what undeclared inputs may be.
        rng: Draws multiples.
    """
    leaves = arguments.paths(example.inputs)
    shown = [*(case for case in user if not case.problems), example]
    items = [item for item in promised.inputs if isinstance(leaves[item.path], torch.Tensor)]
    inputs = [one for item in items if (one := _input(item, leaves[item.path], _seen(item.path, shown))) is not None]
    made: list[RunCase] = []
    before: list[Mapping[str, Any]] = [leaves]
    for declared in (True, False):
        among = {one.item.path: one for one in inputs if one.declared is declared}
        for kind in _kinds(rng):
            filled = _filled(among, kind)
            if not filled or any(_equal(leaves | filled, other) for other in before):
                continue
            before.append(leaves | filled)
            if kind.hides_row and not all(among[path].masks_queries for path in filled):
                continue  # nothing would be left of an item, and no service sends that
            advisory = "" if declared else f"no value range is declared for {', '.join(filled)}"
            made.append(
                replace(
                    example,
                    name=f"special-{kind.name}" if declared else f"special-{kind.name}-undeclared",
                    origin="special",
                    why=f"{kind.why}: {', '.join(filled)}",
                    inputs=_with(example, filled),
                    problems=[],
                    given=None,
                    redrawn=None,
                    advisory=advisory,
                    tied=frozenset(filled) if kind.ties else frozenset(),
                )
            )
    return made[:MOST_CASES]


def _filled(among: Mapping[str, _Input], kind: _Kind) -> dict[str, torch.Tensor]:
    """The inputs that have values of the kind; of rows that are masked, those of queries where there are any."""
    if kind.hides_row and any(one.masks_queries for one in among.values()):
        among = {path: one for path, one in among.items() if one.masks_queries}
    return {path: tensor for path, one in among.items() if (tensor := _tensor(one, kind.fill)) is not None}


def _kinds(rng: np.random.Generator) -> list[_Kind]:
    return [
        _Kind("masked-row", "a query that sees nothing", _mask_row, hides_row=True),
        _Kind("unmasked", "nothing masked", lambda one: None if one.levels is None else one.levels[0]),
        *(_Kind(name, f"{value} in each item", functools.partial(_holding, value)) for name, value in _NONFINITE),
        _Kind("multiples", "exact multiples of a half and of a tenth", lambda one: _multiples(one, rng)),
        _Kind("zeros", "zeros", lambda one: 0.0 if one.levels is None and one.holds(0.0) else None, ties=True),
        _Kind("ties", "all elements equal", _middle, ties=True),
        _Kind("rows", "all rows equal", _rows, ties=True),
        _Kind("low", "the low end of the values", lambda one: None if one.levels else one.low, ties=True),
        _Kind("high", "the high end of the values", lambda one: None if one.levels else one.high, ties=True),
    ]


def _input(item: DeclaredInput, value: torch.Tensor, seen: list[Seen]) -> _Input | None:
    """None for what takes no special values: complex numbers, positions that count up, constants, nothing at all."""
    if value.dtype.is_complex or not value.numel():
        return None
    levels = values.mask_levels(item, value.dtype, seen)
    if levels is not None:
        return _Input(item, value, seen, min(levels), max(levels), levels)
    if item.values is not None:
        low, high = float(min(item.values)), float(max(item.values))
    elif item.low is not None or item.high is not None:
        low, high = values.ends(item, seen)
    elif not value.dtype.is_floating_point and values.counts_up([one.value for one in seen]):
        return None
    else:
        low, high = values.span(seen)
    return _Input(item, value, seen, low, high, None) if low < high or item.nonfinite else None


def _seen(path: str, cases: Sequence[RunCase]) -> list[Seen]:
    leaves = [(arguments.paths(case.inputs).get(path), case.dims) for case in cases]
    return [Seen(leaf, dims) for leaf, dims in leaves if isinstance(leaf, torch.Tensor) and leaf.numel()]


def _tensor(one: _Input, fill: Fill) -> torch.Tensor | None:
    """The filled input in its dtype, never beyond its ends by the rounding of a decimal."""
    given = fill(one)
    if given is None:
        return None
    made = torch.as_tensor(given, device=one.value.device).to(one.value.dtype)
    made = made.broadcast_to(one.value.shape).clone()
    if (one.item.low, one.item.high) != (None, None) and made.dtype.is_floating_point:
        finite = made.isfinite()
        below, above = (made.double() < one.low) & finite, (made.double() > one.high) & finite
        for end, beyond in ((one.low, below), (one.high, above)):
            if bool(beyond.any()):
                towards = torch.tensor((one.low + one.high) / 2, dtype=made.dtype)
                made[beyond] = torch.nextafter(torch.tensor(end, dtype=made.dtype), towards)
    return made


def _mask_row(one: _Input) -> Array | None:
    """The first row wholly masked, the last one not at all: who takes a mask the other way round has both too."""
    if one.levels is None or one.value.dim() == 0:
        return None
    array = one.value.detach().to("cpu", torch.float64).numpy().copy()
    rows = array.reshape(-1, array.shape[-1])
    if len(rows) == 1:
        return None
    rows[0], rows[-1] = one.levels[1], one.levels[0]
    return np.asarray(rows.reshape(array.shape))


def _holding(value: str, one: _Input) -> torch.Tensor | None:
    """The example's values with this one at a place of each item, another place each time."""
    if value not in one.item.nonfinite:
        return None
    made = one.value.detach().clone()
    rows = made.reshape(made.shape[0] if made.dim() > 1 else 1, -1)
    at = torch.arange(len(rows), device=made.device)
    rows[at, (at + rows.shape[1] // 2) % rows.shape[1]] = float(value)
    return rows.reshape(made.shape)


def _multiples(one: _Input, rng: np.random.Generator) -> Array | None:
    if one.levels is not None or one.item.values is not None or not one.value.dtype.is_floating_point:
        return None
    drawn = []
    for step in _STEPS:
        first, last = np.ceil(one.low / step), np.floor(one.high / step)
        if first >= last:
            return None
        drawn.append(rng.integers(int(first), int(last), one.value.shape, endpoint=True) / round(1 / step))
    return np.where(np.arange(one.value.numel()).reshape(one.value.shape) % 2 == 0, *drawn)


def _middle(one: _Input) -> float | None:
    if one.levels is not None:
        return None
    if one.item.values is not None:
        return sorted(one.item.values)[len(one.item.values) // 2]
    middle = (one.low + one.high) / 2
    if one.value.dtype.is_floating_point:
        return round(2 * middle) / 2 if one.holds(round(2 * middle) / 2) else middle
    return float(np.floor(middle)) if one.holds(float(np.floor(middle))) else None


def _rows(one: _Input) -> torch.Tensor | None:
    """The example's first row in the place of all others: of an item's where there are three axes or more."""
    axis = 1 if one.value.dim() > 2 else 0
    if one.levels is not None or one.value.dim() < 2 or one.value.shape[axis] < 2:
        return None
    return one.value.narrow(axis, 0, 1).expand(one.value.shape)


def _with(example: RunCase, filled: Mapping[str, torch.Tensor]) -> NamedInputs:
    def change(path: str, leaf: Any) -> Any:
        return filled.get(path, leaf)

    return arguments.rebuild(example.inputs, change)


def _equal(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    tensors = [path for path, leaf in one.items() if isinstance(leaf, torch.Tensor)]
    return all(torch.equal(one[path], other[path]) for path in tensors)
