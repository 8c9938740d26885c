"""Chooses the sizes at which a model is tried: pure arithmetic on dims, within a budget of memory and work."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnx_ci.export.affordable import Fits, budget
from onnx_ci.export.axes import Shapes, Sizes, names_in, size_of
from onnx_ci.records.model import DimSpec

MOST_CASES = 24
_AWAY = 32
_START = {0: 2}  # the first axis is a batch; others need room for kernels and strides
_SPATIAL, _OTHER = 64, 12
_NEAR = 2048
"""Sizes to either side of the one wanted that are looked through for a distinct one."""


@dataclass(frozen=True, slots=True)
class Range:
    """What a dim may be. Ends are multiples of `step`; `max` None is without end."""

    min: int
    max: int | None
    step: int
    example: int

    @classmethod
    def of(cls, ends: tuple[int, int | None], dim: DimSpec, example: int) -> Range:
        """Rounds a captured range to the declared multiple; size 0 only where the declaration says so."""
        least, most = ends
        if dim.min is None:
            least = max(least, 1)
        step = dim.multiple_of
        return cls(_up(least, step), None if most is None else most // step * step, step, example)

    @property
    def top(self) -> int:
        """The largest size to try: without an end, a step over twice the example."""
        return self.max if self.max is not None else 2 * self.example + self.step

    def near(self) -> Iterator[int]:
        """The sizes next to the example, the nearest first; a few dozen."""
        for away in range(1, _AWAY):
            for size in (self.example + away * self.step, self.example - away * self.step):
                if self.holds(size):
                    yield size

    def holds(self, size: int) -> bool:
        """Whether a size is in the range."""
        return self.min <= size and (self.max is None or size <= self.max) and size % self.step == 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The sizes of a case to be made, and why."""

    name: str
    why: str
    dims: Sizes


def boundaries(
    ranges: Mapping[str, Range],
    base: Sizes,
    shapes: Shapes,
    widths: Mapping[str, int],
    known: Sequence[Sizes] = (),
    flops: float = 0.0,
) -> tuple[list[Plan], list[str]]:
    """Each dim alone at its ends and one off the example, all at their ends, rectangles both ways.

    Where all ends together can't be afforded, a dim gets to its end beside smaller others: sizes are dear there.

    Args:
        ranges: The dims that may vary.
        base: The example's size of every dim.
        shapes: The axes of each tensor, by path.
        widths: Bytes an element, by path.
        known: Sizes that a case exists for, beside the example's.
        flops: Of the example.

    Returns:
        The plans, no sizes twice, and a sentence for each one that was left out.
    """
    fits = budget(base, shapes, widths, flops)
    tops = base | {name: one.top for name, one in ranges.items()}
    modest = fits if fits(tops) else budget(base, shapes, widths, flops, share=0.5)
    tried = [dict(base), *map(dict, known)]
    plans: list[Plan] = []
    notes: list[str] = []
    wanted = _wanted(ranges, base, shapes, fits, modest)
    for plan in itertools.chain(wanted, _missing(ranges, base, shapes, fits, tried)):
        if plan.dims in tried:
            continue
        tried.append(plan.dims)
        if not fits(plan.dims):
            notes.append(f"case {plan.name} was left out: its inputs are too large")
        elif len(plans) == MOST_CASES:
            notes.append(f"case {plan.name} was left out: there are {MOST_CASES} already")
        else:
            plans.append(plan)
    return plans, notes


def mixed(
    shapes: Sequence[Mapping[str, float]], ranges: Mapping[str, Range], base: Sizes, known: Sequence[Mapping[str, int]]
) -> list[Plan]:
    """The sizes of a request mix that no case has yet; a dim that the model lacks, or a size out of range, is left.

    Args:
        shapes: Sizes by dim, with a "weight" that is of no matter here.
        ranges: The dims that may vary.
        base: The example's size of every dim.
        known: Sizes that a case exists for.
    """
    plans: list[Plan] = []
    for shape in shapes:
        wanted = {name: int(size) for name, size in shape.items() if name in ranges}
        dims = base | wanted
        listed = ", ".join(f"{name} {size}" for name, size in wanted.items())
        taken = [*known, *(plan.dims for plan in plans)]
        if all(ranges[name].holds(size) for name, size in wanted.items()) and dims not in taken:
            name = "mix-" + "-".join(f"{name}{size}" for name, size in wanted.items())
            plans.append(Plan(name, f"a size of the request mix: {listed}", dims))
    return plans


def example(dims: Mapping[str, DimSpec], taken: set[int], shapes: Shapes) -> Sizes:
    """Sizes for an example: the declared ones, else distinct, none of 0, 1 or a static size, and in range."""
    chosen = {name: dim.example for name, dim in dims.items() if dim.example is not None}
    for name, dim in dims.items():
        if name not in chosen:
            avoid = taken | set(chosen.values()) | {0, 1}
            chosen[name] = _distinct(dim, avoid, _start(name, shapes))
    return {name: chosen[name] for name in dims}


def _wanted(ranges: Mapping[str, Range], base: Sizes, shapes: Shapes, fits: Fits, modest: Fits) -> Iterator[Plan]:
    if len(ranges) > 1:
        yield Plan("all-min", "every dim at its minimum", base | {name: one.min for name, one in ranges.items()})
        together = _all_max(ranges, base, fits)
        if modest(together.dims) or sum(together.dims[name] == one.top for name, one in ranges.items()) > 1:
            yield together  # else it is little more than the one dim at its end
    for name, one in ranges.items():
        yield Plan(f"{name}-min", f"{name} at its minimum, {one.min}", base | {name: one.min})
        yield _at_max(name, ranges, base, fits, modest)
        off = next((size for size in (one.example + one.step, one.example - one.step) if one.holds(size)), None)
        if off is not None:
            yield Plan(f"{name}-off", f"{name} one step off the example, {off}", base | {name: off})
    for first, second in neighbours(shapes, ranges):
        if ranges[first].holds(base[second]) and ranges[second].holds(base[first]):
            swapped = base | {first: base[second], second: base[first]}
            yield Plan(f"{first}-{second}-swapped", f"{first} and {second} exchanged", swapped)


def _missing(
    ranges: Mapping[str, Range], base: Sizes, shapes: Shapes, fits: Fits, tried: Sequence[Sizes]
) -> Iterator[Plan]:
    """What none of the cases so far is, though the ranges allow it: a rectangle of either kind, a size that no
    neighbour divides. `tried` grows while this runs.
    """
    for pair in neighbours(shapes, ranges):
        for small, large in (pair, pair[::-1]):
            one, other = ranges[small], ranges[large]
            if one.min < other.top and not any(dims[small] < dims[large] for dims in tried if small in dims):
                dims = base | {small: one.min, large: _largest(large, other, base | {small: one.min}, fits)}
                yield Plan(f"{small}-below-{large}", f"{small} smaller than {large}", dims)
    for name, one in ranges.items():
        beside = _beside(name, shapes)
        if any(_odd(name, dims, beside) for dims in tried if name in dims):
            continue
        odd = next((size for size in one.near() if _odd(name, base | {name: size}, beside)), None)
        if odd is not None:
            yield Plan(f"{name}-odd", f"{name} {odd}, a multiple of none of its neighbours", base | {name: odd})


def _odd(name: str, dims: Sizes, beside: Sequence[int | str]) -> bool:
    others = [size_of(axis, dims) for axis in beside]
    return dims[name] > 1 and all(dims[name] % size for size in others if size > 1)


def _beside(name: str, shapes: Shapes) -> list[int | str]:
    """The axes that lie beside a dim in some tensor, and are not made of it."""
    found: dict[int | str, None] = {}
    for axes in shapes.values():
        for first, second in itertools.pairwise(axes):
            for one, other in ((first, second), (second, first)):
                if one == name and name not in names_in(other):
                    found[other] = None
    return list(found)


def _at_max(name: str, ranges: Mapping[str, Range], base: Sizes, fits: Fits, modest: Fits) -> Plan:
    one = ranges[name]
    dims = _beside_end(name, ranges, base, modest)
    dims[name] = size = _largest(name, one, dims, fits)
    why = f"{name} at its maximum, {size}"
    if one.max is None:
        why = f"{name} has no maximum: {size}, with {base[name]} in the example"
    elif size < one.max:
        why = f"{name} at {size}, short of its maximum {one.max}, to stay within the budget of memory and time"
    less = [f"{other} {dims[other]}" for other in ranges if dims[other] < base[other]]
    return Plan(f"{name}-max", f"{why}; {' and '.join(less)}, to afford it" if less else why, dims)


def _beside_end(name: str, ranges: Mapping[str, Range], base: Sizes, modest: Fits) -> Sizes:
    """A dim at its end, and the others no larger than leaves that modest.

    None is less than a quarter of the example, nor 1 where the example is more: a size of 1 hides what is broadcast.
    """
    dims = base | {name: ranges[name].top}
    for other in sorted(ranges.keys() - {name}, key=lambda other: (-base[other], other)):
        if modest(dims):
            break
        one = ranges[other]
        least = max(one.min, _up(max(-(-base[other] // 4), min(base[other], 2)), one.step))
        dims[other] = _between(other, one, least, base[other], dims, modest)
    return dims


def _all_max(ranges: Mapping[str, Range], base: Sizes, fits: Fits) -> Plan:
    dims = base | {name: one.top for name, one in ranges.items()}
    cut: list[str] = []
    for name in sorted(ranges, key=lambda name: ranges[name].top / max(base[name], 1), reverse=True):
        if fits(dims):
            break
        dims[name] = _largest(name, ranges[name], dims, fits)
        cut.append(name)
    said = f"; {', '.join(cut)} less, to stay within the budget of memory and time" if cut else ""
    return Plan("all-max", f"every dim at its maximum{said}", dims)


def _largest(name: str, one: Range, dims: Sizes, fits: Fits) -> int:
    """The largest size of one dim that fits, the others as they are; at least the example's."""
    return _between(name, one, one.example, one.top, dims, fits)


def _between(name: str, one: Range, least: int, most: int, dims: Sizes, fits: Fits) -> int:
    """The largest size of one dim between two that fits; the least, whether it does or not."""
    if fits(dims | {name: most}):
        return most
    low, high = least // one.step, most // one.step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(dims | {name: middle * one.step}) else (low, middle)
    return low * one.step


def _up(size: int, step: int) -> int:
    """The next multiple."""
    return -(-size // step) * step


def neighbours(shapes: Shapes, ranges: Mapping[str, Range]) -> list[tuple[str, str]]:
    """Pairs of dims that lie side by side in a tensor."""
    pairs: dict[tuple[str, str], None] = {}
    for axes in shapes.values():
        for first, second in itertools.pairwise(axes):
            if first in ranges and second in ranges and first != second:
                pairs[str(first), str(second)] = None
    return list(pairs)


def _start(name: str, shapes: Shapes) -> int:
    for axes in shapes.values():
        if name in axes:
            at = list(axes).index(name)
            return _START.get(at, _SPATIAL if len(axes) >= 4 and at >= 2 else _OTHER)
    return _OTHER


def _distinct(dim: DimSpec, avoid: set[int], start: int) -> int:
    """The size next to `start`; to twice the minimum where that is larger.

    At its minimum a dim often leaves a single window, patch or frame, and torch freezes a size of 1.
    """
    step = dim.multiple_of
    low = _up(max(dim.min or 0, 1), step)
    wanted = 2 * low + 1 if low >= start else start
    high = dim.max if dim.max is not None else max(low, wanted) + step * (len(avoid) + 1)
    sizes = range(low, high + 1, step)
    middle = (min(wanted, high) - low) // step
    close = sizes[max(middle - _NEAR, 0) : middle + _NEAR]
    near = sorted(close, key=lambda size: (size < wanted, abs(size - wanted)))
    return next((size for size in near if size not in avoid), low)
