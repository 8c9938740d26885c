"""Where sizes jump: pure arithmetic on what forward did at many sizes of one dim.

A size that follows a dim in equal steps is regular, and so is one that follows it in a pattern (a stride of two);
told are the places where the steps change: the sides of a branch, a clamp, a rounding.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Pair = tuple[int, int]
"""Two neighbouring sizes of a dim."""
Numbers = tuple[float, ...]
Said = Callable[[int, int, int], str]
"""What changes at a place of a table, between a lower and a higher size; "{dim}" stands for the dim's name."""
_FEW = 3
"""A step that is seen no more often than this is told place by place; beyond, it is a pattern."""
_MOST_VARIANTS = 3
_PARTS = 10
_FIRST = -1.0
_RANKS = ("refused", "output", "branch", "inner")


@dataclass(frozen=True, slots=True)
class Trace:
    """What forward did at one size.

    Attributes:
        operators: In order, each with how many numbers it noted.
        numbers: Of each operator: its output's sizes, and the numbers that it was given.
        outputs: The shape of each output.
        error: What it raised; then there is nothing else.
    """

    operators: tuple[tuple[str, int], ...] = ()
    numbers: tuple[Numbers, ...] = ()
    outputs: tuple[tuple[int, ...], ...] = ()
    error: str = ""


@dataclass(slots=True)
class Kind:
    """One thing that changes, with the pairs of sizes between which it does, and a sentence about each."""

    rank: int
    pairs: dict[Pair, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Choice:
    """A size to be tried, and why."""

    size: int
    why: str


@dataclass(frozen=True, slots=True)
class Trust:
    """What of a trace hangs on the sizes alone; the rest hangs on the data too, and is not looked at."""

    operators: bool = True
    numbers: bool = True
    outputs: bool = True


def find(traces: Mapping[int, Trace], step: int, outputs: Sequence[str], trust: Trust) -> list[Kind]:
    """All jumps in a table of traces by size, the most telling kinds first.

    Args:
        traces: By size; only sizes that are `step` apart are compared.
        step: Between two neighbouring sizes.
        outputs: The names of the outputs, in their order.
        trust: What of the traces may be compared.
    """
    kinds: list[Kind] = []
    for stretch in _stretches(sorted(traces), step):
        table = [traces[size] for size in stretch]
        kinds += _refused(stretch, table)
        if trust.outputs:
            kinds += _outputs(stretch, table, outputs)
        if trust.operators:
            kinds += _kinds(stretch, _lengths(table), "branch", _branch(table))
        if trust.numbers:
            for run in _runs(table):
                kinds += _inner(stretch[run.start : run.stop], table[run.start : run.stop])
    return _without_copies(kinds)


def choose(kinds: Sequence[Kind], known: Sequence[int], example: int, most: int) -> list[Choice]:
    """Sizes on both sides of each kind of jump, few and near the example; known ones are not chosen again."""
    have, chosen = set(known), list[Choice]()

    def order(kind: Kind) -> tuple[int, int, int]:
        return kind.rank, len(kind.pairs), min(abs(low - example) for low, _ in kind.pairs)

    for kind in sorted((kind for kind in kinds if kind.pairs), key=order):
        if any(have.issuperset(pair) for pair in kind.pairs):
            continue

        def cost(pair: Pair) -> tuple[int, int, int]:
            shared = sum(pair in other.pairs for other in kinds)
            return len(set(pair) - have), -shared, abs(pair[0] - example)

        pair = min(kind.pairs, key=cost)
        new = [size for size in pair if size not in have]
        if len(chosen) + len(new) > most:
            continue
        have.update(new)
        chosen += [Choice(size, kind.pairs[pair]) for size in new]
    return chosen


def fitting(kind: Kind, fits: Callable[[int], bool]) -> Kind:
    """The kind with those of its pairs of which both sizes may be tried."""
    return Kind(kind.rank, {pair: said for pair, said in kind.pairs.items() if fits(pair[0]) and fits(pair[1])})


def events(values: Sequence[float | None], *, whole: bool = True) -> list[tuple[int, tuple[float, ...]]]:
    """Where the steps of a series change, each with its signature: steps of one pattern have the same.

    Args:
        values: One a size; None where there is none, which breaks the series.
        whole: Of whole numbers. A fraction that changes at every size (a scale of 1/n) is no jump.

    Returns:
        Pairs ``(i, signature)``: between the sizes i and i + 1. None for an even series, also one of even growth.
    """
    steps = [None if a is None or b is None else b - a for a, b in itertools.pairwise(values)]
    known = [one for one in steps if one is not None]
    if not known or len(set(known)) == 1 or _grows_evenly(known):
        return []
    share = {one: round(_PARTS * count / len(known)) for one, count in Counter(known).items()}
    usual = max(share, key=lambda one: (share[one], -abs(one)))  # of two that alternate, the smaller one
    if not whole and usual != 0:
        return []
    found: list[tuple[int, tuple[float, ...]]] = []
    before, length, last = None, 0, None
    for at, now in enumerate(steps):
        if now is None:
            before, length, last = None, 0, None
            continue
        starts = now != before and before is not None
        single = before is None and now != usual and at + 1 < len(steps) and steps[at + 1] == usual
        again = length == 1 and last == at - 1  # what follows a single odd step was told with it
        if (starts and not again) or single:
            found.append(
                (at, (now, before if before is not None else usual, at - last if last is not None else _FIRST))
            )
            last = at
        length = length + 1 if now == before else 1
        before = now
    restless = len(found) > len(known) // 3 and len({sign for _, sign in found}) > 2 * _MOST_VARIANTS
    return [] if restless else found


def _grows_evenly(steps: Sequence[float]) -> bool:
    return len(steps) > 2 and len({b - a for a, b in itertools.pairwise(steps)}) == 1


def _stretches(sizes: Sequence[int], step: int) -> Iterator[list[int]]:
    run: list[int] = []
    for size in sizes:
        if run and size - run[-1] != step:
            yield run
            run = []
        run.append(size)
    if run:
        yield run


def _runs(table: Sequence[Trace]) -> Iterator[range]:
    """Stretches in which forward runs the same operators; what is shorter than three shows no pattern."""
    start = 0
    for at in range(1, len(table) + 1):
        if at == len(table) or table[at].operators != table[start].operators or table[at].error:
            if at - start > 2:
                yield range(start, at)
            start = at


def _lengths(table: Sequence[Trace]) -> list[float | None]:
    """The number of operators, a half more at each change to others of the same number."""
    found: list[float | None] = []
    extra = 0.0
    for before, now in itertools.pairwise([table[0], *table]):
        same_number = len(before.operators) == len(now.operators)
        if same_number and before.operators != now.operators and not before.error:
            extra += 0.5
        found.append(None if now.error else len(now.operators) + extra)
    return found


def _refused(sizes: Sequence[int], table: Sequence[Trace]) -> list[Kind]:
    """One kind for all: where forward refuses every second size, one of them tells it."""
    said = _refusal(table)
    at = [at for at, (one, other) in enumerate(itertools.pairwise(table)) if bool(one.error) != bool(other.error)]
    pairs = {(sizes[low], sizes[low + 1]): said(low, sizes[low], sizes[low + 1]) for low in at}
    return [Kind(_RANKS.index("refused"), pairs)] if pairs else []


def _outputs(sizes: Sequence[int], table: Sequence[Trace], names: Sequence[str]) -> list[Kind]:
    ranks = max((one.outputs for one in table), key=len)
    kinds: list[Kind] = []
    for at, shape in enumerate(ranks):
        name = names[at] if at < len(names) else str(at)
        for axis in range(len(shape)):
            values = [_size(one, at, axis, len(shape)) for one in table]
            kinds += _kinds(sizes, values, "output", _stepping(f"axis {axis} of the output {name}", values))
    return kinds


def _size(one: Trace, at: int, axis: int, rank: int) -> int | None:
    return one.outputs[at][axis] if len(one.outputs) > at and len(one.outputs[at]) == rank else None


def _inner(sizes: Sequence[int], table: Sequence[Trace]) -> list[Kind]:
    kinds: list[Kind] = []
    seen: set[tuple[float, ...]] = set()
    for at, (operator, count) in enumerate(table[0].operators):
        if len({one.numbers[at] for one in table}) == 1:
            continue
        for place in range(count):
            values = tuple(one.numbers[at][place] for one in table)
            if values in seen:
                continue
            seen.add(values)
            kinds += _kinds(sizes, values, "inner", _stepping(f"a size in forward ({operator})", values))
    return kinds


def _kinds(sizes: Sequence[int], values: Sequence[float | None], what: str, said: Said) -> list[Kind]:
    """One kind for each signature; a rare step is a kind of its own at each of its places."""
    whole = all(value is None or float(2 * value).is_integer() for value in values)
    found = events(values, whole=whole)
    by_step: dict[tuple[float, ...], dict[tuple[float, ...], list[int]]] = {}
    for at, sign in found:
        by_step.setdefault(sign[:2], {}).setdefault(sign, []).append(at)
    kinds: list[Kind] = []
    rank = _RANKS.index(what)
    for step, variants in by_step.items():
        places = [at for group in variants.values() for at in group]
        late = 0
        groups = [[at] for at in places]
        if len(places) > _FEW:
            late = len(_RANKS)  # what is seen once tells more than a pattern
            variants.pop((*step, _FIRST), None)  # it has no gap before it to tell it by
            groups = list(variants.values()) if len(variants) <= _MOST_VARIANTS else [places]
        kinds += [
            Kind(rank + late, {(sizes[at], sizes[at + 1]): said(at, sizes[at], sizes[at + 1]) for at in group})
            for group in groups
        ]
    return kinds


def _stepping(what: str, values: Sequence[float | None]) -> Said:
    def said(at: int, low: int, high: int) -> str:
        before, after = values[at], values[at + 1]
        if before == after:
            return f"{what} stays {before:g} between {{dim}} {low} and {high}, where its steps change"
        return f"{what} goes from {before:g} to {after:g} between {{dim}} {low} and {high}"

    return said


def _branch(table: Sequence[Trace]) -> Said:
    def said(at: int, low: int, high: int) -> str:
        before, after = len(table[at].operators), len(table[at + 1].operators)
        counts = f"{before} and {after} of them" if before != after else f"{before} each"
        return f"forward runs other operators at {{dim}} {low} than at {high} ({counts}): a branch or a loop"

    return said


def _refusal(table: Sequence[Trace]) -> Said:
    def said(at: int, low: int, high: int) -> str:
        takes, refuses = (high, low) if table[at].error else (low, high)
        return f"forward takes {{dim}} {takes} and refuses {refuses}"

    return said


def _without_copies(kinds: Sequence[Kind]) -> list[Kind]:
    """Kinds by rank, the rarest first; of those with the same pairs the first."""
    known: set[frozenset[Pair]] = set()
    kept = []
    for kind in sorted(kinds, key=lambda kind: (kind.rank, len(kind.pairs))):
        pairs = frozenset(kind.pairs)
        if pairs not in known:
            known.add(pairs)
            kept.append(kind)
    return kept
