"""Judges what a capture assumed of sizes and the file does not check: sizes inside the range that it excludes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnx_ci.export import traced
from onnx_ci.export.axes import names_in, size_of
from onnx_ci.export.guardlog import GuardLog
from onnx_ci.export.places import Place
from onnx_ci.export.ranges import Range, declared_range
from onnx_ci.export.shapes import Reading, words_in
from onnx_ci.export.types import Declared

_MOST_TRIES = 700
_BEYOND_EXAMPLE = 64
_LARGEST_STEP = 128


@dataclass(frozen=True, slots=True)
class Restriction:
    """Sizes inside the range at which the captured graph no longer holds.

    Attributes:
        text: The condition, with the declared names put in.
        dims: The dims that it speaks of.
        excluded: Sizes at which it is false, nearest to the example first, never with a dim of 0 or 1.
        condition: As torch has it, with the dim of each of its symbols, or the expression of dims, in `symbols`.
    """

    text: str
    dims: list[str]
    excluded: list[dict[str, int]]
    condition: Any
    symbols: Mapping[Any, str]
    place: Place | None = None

    def allows(self, dims: Mapping[str, int]) -> bool:
        """Whether the graph holds at these sizes; where a size is unknown, it is taken to."""
        known = {symbol: size_of(axis, dims) for symbol, axis in self.symbols.items() if names_in(axis) <= dims.keys()}
        return len(known) < len(self.symbols) or traced.holds(self.condition, known) is not False


def restrictions(asserts: Sequence[Any], reading: Reading, declared: Declared, log: GuardLog) -> list[Restriction]:
    """Evaluates each deferred assert over the declared sizes; those that hold throughout are no restriction.

    One that excludes only a size of 0 or 1 is none either: torch keeps these apart (recurrent layers, batch norm), and
    a case at that size tests it.
    """
    found: dict[str, Restriction] = {}
    for condition in asserts:
        symbols = {symbol: reading.symbols.get(symbol) for symbol in condition.free_symbols}
        if not symbols or None in symbols.values():
            continue  # of a size that only the data tell
        names = {symbol: name for symbol, name in symbols.items() if name is not None}
        dims = sorted({name for axis in names.values() for name in names_in(axis)})
        excluded = [
            at
            for at in _sizes(dims, reading, declared)
            if traced.holds(condition, {symbol: size_of(axis, at) for symbol, axis in names.items()}) is False
            and min(at.values()) > 1
        ]
        if excluded:
            text = traced.shown(condition, names)
            found.setdefault(
                text,
                Restriction(text, dims, excluded, condition, names, _place(condition, log)),
            )
    return list(found.values())


def bound(restriction: Restriction, reading: Reading, declared: Declared) -> Range | None:
    """The range that a restriction leaves to a dim without a declared one; None where it is no plain bound."""
    if len(restriction.dims) != 1:
        return None
    (name,) = restriction.dims
    spec, example = declared.dims.get(name), reading.example.get(name)
    out = [at[name] for at in restriction.excluded]
    if example is None or example in out:
        return None
    below, above = [size for size in out if size < example], [size for size in out if size > example]
    if (below and spec and spec.min is not None) or (above and spec and spec.max is not None):
        return None
    tried = [at for (at,) in _tried([name], reading, declared)]
    least = max(below) + 1 if below else reading.captured[name].least
    most = min(above) - 1 if above else reading.captured[name].most
    whole = set(out) == {size for size in tried if size > 1 and (size < least or (most is not None and size > most))}
    return Range(least, most) if whole else None


def narrow(reading: Reading, name: str, to: Range, guard: str) -> Reading:
    """A reading in which a dim without a declared range has a smaller captured one."""
    captured = {**reading.captured, name: to}
    return replace(reading, captured=captured, narrowed={**reading.narrowed, name: guard})


def steps(restriction: Restriction, reading: Reading, declared: Declared) -> dict[str, int]:
    """For each dim, with the others as in the example, the number whose multiples are all that is allowed."""
    found = {}
    for name in restriction.dims:
        tried = [size for size in _candidates(name, reading, declared, _MOST_TRIES) if size > 1]
        allowed = [size for size in tried if restriction.allows({**reading.example, name: size})]
        for step in range(2, _LARGEST_STEP):
            if allowed and allowed == [size for size in tried if size % step == 0]:
                found[name] = step
                break
    return found


def _sizes(dims: Sequence[str], reading: Reading, declared: Declared) -> Iterator[dict[str, int]]:
    example = [reading.example.get(dim, 2) for dim in dims]
    tried = sorted(
        _tried(dims, reading, declared),
        key=lambda at: sum(abs(size - near) for size, near in zip(at, example, strict=True)),
    )
    for at in tried:
        yield dict(zip(dims, at, strict=True))


def _tried(dims: Sequence[str], reading: Reading, declared: Declared) -> Iterator[tuple[int, ...]]:
    each = max(4, int(_MOST_TRIES ** (1 / len(dims))))
    return itertools.product(*(_candidates(dim, reading, declared, each) for dim in dims))


def _candidates(dim: str, reading: Reading, declared: Declared, most: int) -> list[int]:
    """Sizes of a dim to try: all where they are few, else the ends, those about the example, and some between."""
    spec, example = declared.dims.get(dim), reading.example.get(dim, 2)
    promised, captured = declared_range(spec), reading.captured[dim]
    multiple = spec.multiple_of if spec else 1
    least = max(promised.least, captured.least)
    ends = [end for end in (promised.most, captured.most) if end is not None]
    last = min(ends) if ends else 2 * example + _BEYOND_EXAMPLE
    every = [size for size in range(least, last + 1) if size % multiple == 0]
    if len(every) <= most:
        return every
    near = [size for size in every if abs(size - example) <= most // 6]
    spread = every[:: max(1, len(every) // (most // 3))]
    return sorted({*every[: most // 6], *every[-(most // 6) :], *near, *spread})


def _place(condition: Any, log: GuardLog) -> Place | None:
    text = str(condition)
    for guard in log.guards:
        if guard.text == text and guard.place is not None:
            return guard.place
    words = {str(symbol) for symbol in condition.free_symbols}
    for guard in log.guards:
        if guard.place is not None and words == words_in(guard.text) & set(log.symbols):
            return guard.place
    return None
