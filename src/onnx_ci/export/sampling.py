"""Which sizes of a dim to look at: all of a short range; of a long one ends, example, and where things change."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

from onnx_ci.export.jumps import Trace
from onnx_ci.export.sizes import Range

Look = Callable[[int], "Trace | None"]
"""What forward does at a size; None where the time is over or nothing can be told."""
DENSE = 256
"""Up to so many sizes, all of them."""
_WINDOW = 72
"""Sizes around the example; two periods of a stride of 32, and a little."""
_END = 12
_GRID = 24
_MOST_LOOKS = 160
_SMALL = 20


def sample(one: Range, look: Look) -> dict[int, Trace]:
    """Traces by size: the example's first, the most telling next, until `look` gives None or nothing is left."""
    found: dict[int, Trace] = {}
    last = (one.top - one.min) // one.step

    def at(place: int) -> bool:
        """Looks at the size of a place in the range, 0 to `last`; False when it is over."""
        size = one.min + place * one.step
        if size not in found:
            trace = look(size)
            if trace is None:
                return False
            found[size] = trace
        return True

    middle = min(max((one.example - one.min) // one.step, 0), last)
    near = sorted(
        range(max(middle - _WINDOW, 0), min(middle + _WINDOW, last) + 1), key=lambda place: abs(place - middle)
    )
    ends = [*range(min(_END, last + 1)), *range(max(last - _END, 0), last + 1)]
    rest = range(last + 1) if last < DENSE else [round(last * part / _GRID) for part in range(_GRID + 1)]
    for place in [middle, last, 0, *sorted(near, key=lambda place: abs(place - middle)), *ends, *rest]:
        if not at(place):
            return found
    if last >= DENSE:
        _halve(one, found, at)
    return found


def _halve(one: Range, found: Mapping[int, Trace], at: Callable[[int], bool]) -> None:
    """Halves the gaps that hide a change, down to neighbours.

    Sure is a change between sides that differ in kind. A middle that is off the line between them may also be a curve
    (a product of sizes), so that such gaps come last and are few.
    """
    places = sorted((size - one.min) // one.step for size in found)
    count = (one.top - one.min) // one.step
    slack = _slack(one, found)
    reach = min(round(2 * slack) + 2, _SMALL)
    gaps = [(a, b, False) for a, b in itertools.pairwise(places) if b - a > 1]
    sure: list[tuple[int, int, bool]] = []
    most = len(found) + len(gaps) + _MOST_LOOKS
    while sure or (gaps and len(found) < most):
        low, high, suspect = sure.pop() if sure else gaps.pop(0)
        middle = (low + high) // 2
        if not at(middle):
            return
        first, between, last = (found[one.min + place * one.step] for place in (low, middle, high))
        straight = _on_line(first, between, last, (middle - low) / (high - low), slack)
        alike = _alike(first, between), _alike(between, last)
        near: list[int] = []
        if straight and all(alike):  # half of one that is not: a change near an end hides in the slack
            near = [*range(low, low + reach), *range(high - reach, high + reach)] if suspect else []
        elif high - low <= _SMALL:
            near = list(range(low - 2, high + 3))
        else:
            for a, b, same in ((low, middle, alike[0]), (middle, high, alike[1])):
                if not (same and straight):
                    (gaps if same else sure).append((a, b, True))
        if not all(at(place) for place in near if 0 <= place <= count):
            return


def _alike(one: Trace, other: Trace) -> bool:
    return bool(one.error) == bool(other.error) and one.operators == other.operators


def _on_line(first: Trace, middle: Trace, last: Trace, share: float, slack: float) -> bool:
    """Whether the sizes in the middle are those of an even growth, but for what patterns move them."""
    if first.operators == last.operators:
        if middle.operators != first.operators:
            return False
        rows = zip(first.numbers, middle.numbers, last.numbers, strict=True)
    elif first.error:
        return bool(middle.error)
    else:
        rows = zip(first.outputs, middle.outputs, last.outputs, strict=False)
        count = len(first.operators) + share * (len(last.operators) - len(first.operators))
        if abs(len(middle.operators) - count) > slack:
            return False
    return all(abs(b - (a + share * (c - a))) <= slack for row in rows for a, b, c in zip(*row, strict=False))


def _slack(one: Range, found: Mapping[int, Trace]) -> float:
    """How far a pattern may lift a size off its line: twice the largest step that was seen near the example."""
    largest = 1.0
    for size, trace in found.items():
        after = found.get(size + one.step)
        if after is not None and after.operators == trace.operators:
            for row, other in zip(trace.numbers, after.numbers, strict=True):
                largest = max([largest, *(abs(b - a) for a, b in zip(row, other, strict=True))])
    return 2 * largest
