"""Changes of shapes: sizes, ranges of dims, dims that were tied or set free, and the expressions of output sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from onnx_ci.records import expression
from onnx_ci.records.contract import Contract, DimContract
from onnx_ci.records.expression import UNKNOWN, ExpressionError
from onnx_ci.report.contract_change import Change, breaking, compatible, may_break
from onnx_ci.report.contract_tensors import Pair

_SAMPLES = 6
_LARGEST = 2**63
_ANY = DimContract(min=0, max=None)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes that a dim may have: multiples of `step` from `low` to `high`; `high` None is without end."""

    low: int
    high: int | None
    step: int
    declared: bool

    @classmethod
    def of(cls, dim: DimContract) -> Sizes:
        """Both ends are moved inwards to a multiple; what no size can be is cut, since contracts come from outside."""
        step = min(max(dim.multiple_of, 1), _LARGEST)
        low = -(-min(max(dim.min, 0), _LARGEST) // step) * step
        high = None if dim.max is None else max(min(dim.max, _LARGEST) // step * step, low)
        return cls(low, high, step, dim.declared)

    def holds(self, size: int) -> bool:
        """Whether a size is one of them."""
        return self.low <= size and (self.high is None or size <= self.high) and size % self.step == 0

    def within(self, other: Sizes) -> bool:
        """Whether each of them is one of the others."""
        if self.low == self.high:
            return other.holds(self.low)
        high = other.high is None or (self.high is not None and self.high <= other.high)
        return other.low <= self.low and high and self.step % other.step == 0

    def __str__(self) -> str:
        """As a person says it: ``[32, 512] in steps of 16``; ``…`` is without end."""
        ends = str(self.low) if self.low == self.high else f"[{self.low}, {'…' if self.high is None else self.high}]"
        return ends if self.step == 1 else f"{ends} in steps of {self.step}"


@dataclass(slots=True)
class Match:
    """Which dim of the base stands where which dim of head stands, in the inputs.

    Attributes:
        now: For each dim of the base, those of head, in order.
        then: The other way round.
        fixed: Dims of the base that are one size now; likewise `freed`, dims of head that were one size.
    """

    now: dict[str, dict[str, None]] = field(default_factory=dict)
    then: dict[str, dict[str, None]] = field(default_factory=dict)
    fixed: dict[str, int] = field(default_factory=dict)
    freed: dict[str, int] = field(default_factory=dict)

    def note(self, before: int | str, after: int | str) -> None:
        """Takes down one axis; expressions of dims tell nothing."""
        old = isinstance(before, str) and before.isidentifier()
        new = isinstance(after, str) and after.isidentifier()
        if old and new:
            self.now.setdefault(str(before), {})[str(after)] = None
            self.then.setdefault(str(after), {})[str(before)] = None
        elif old and isinstance(after, int):
            self.fixed[str(before)] = after
        elif new and isinstance(before, int):
            self.freed[str(after)] = before


def inputs(base: Contract, head: Contract, pairs: Sequence[Pair]) -> tuple[list[Change], Match]:
    """What sizes a service may send, then and now; and how the dims of both go together."""
    match, found = Match(), list[Change]()
    for before, after in pairs:
        if before.shape is None or after.shape is None or len(before.shape) != len(after.shape):
            continue
        for axis, (old, new) in enumerate(zip(before.shape, after.shape, strict=True)):
            match.note(old, new)
            if old not in match.now or new not in match.now[str(old)]:
                found += _axis(f"axis {axis} of {after.name}", after.name, old, new, base, head)
    found += _dims(base, head, match)
    return list(dict.fromkeys(found)), match


def _axis(where: str, subject: str, old: int | str, new: int | str, base: Contract, head: Contract) -> Iterator[Change]:
    """One axis of an input that is not a plain dim on both sides."""
    if old == new:
        return
    before, after = _sizes(old, base), _sizes(new, head)
    if before is None or after is None:
        yield may_break(subject, f"{where} was {_say(old)} and is {_say(new)}")
        return
    message = f"{where} was {_say(old, before)} and is {_say(new, after)}"
    if before.within(after):
        if not after.within(before):
            yield compatible(subject, message)
        return
    yield breaking(subject, message) if before.declared else may_break(subject, message)


def _sizes(axis: int | str, contract: Contract) -> Sizes | None:
    """What an axis may be; None for an expression."""
    if isinstance(axis, int):
        return Sizes(axis, axis, 1, True)
    return Sizes.of(contract.dims.get(axis, _ANY)) if axis.isidentifier() else None


def _say(axis: int | str, sizes: Sizes | None = None) -> str:
    if isinstance(axis, int):
        return f"{axis} only" if sizes else str(axis)
    return f"{axis} {sizes}" if sizes else ("unknown" if axis == UNKNOWN else axis)


def _dims(base: Contract, head: Contract, match: Match) -> Iterator[Change]:
    for before, afters in match.now.items():
        if len(afters) > 1:
            yield compatible(before, f"{before} was one dim and is now {' and '.join(afters)}, which may differ")
        for after in afters:
            if len(afters) == 1 == len(match.then[after]) and before != after:
                yield compatible(after, f"the dim {before} is called {after} now")
            yield from _range(after, Sizes.of(base.dims.get(before, _ANY)), Sizes.of(head.dims.get(after, _ANY)))
    for after, befores in match.then.items():
        if len(befores) > 1:
            yield breaking(after, f"{' and '.join(befores)} are one dim now ({after}): they can't differ any more")


def _range(name: str, before: Sizes, after: Sizes) -> Iterator[Change]:
    if before.within(after):
        if not after.within(before):
            yield compatible(name, f"the range of {name} was widened from {before} to {after}")
        return
    how = "narrowed" if after.within(before) else "moved"
    message = f"the range of {name} was {how} from {before} to {after}"
    # A range that the capture found, and nobody declared, moves with the version of PyTorch.
    yield breaking(name, message) if before.declared else may_break(name, f"{message}; the base did not declare it")


def outputs(base: Contract, head: Contract, pairs: Sequence[Pair], match: Match) -> Iterator[Change]:
    """What sizes a service gets, then and now, where it sends the same."""
    samples = list(_samples(base, head, match))
    for before, after in pairs:
        if before.shape is None or after.shape is None or len(before.shape) != len(after.shape):
            continue
        for axis, (old, new) in enumerate(zip(before.shape, after.shape, strict=True)):
            yield from _output(f"axis {axis} of {after.name}", after.name, old, new, samples)


Sample = tuple[dict[str, int], dict[str, int]]
"""The sizes of the base's dims and of head's, for one and the same input."""


def _output(where: str, subject: str, old: int | str, new: int | str, samples: Sequence[Sample]) -> Iterator[Change]:
    if isinstance(old, int) and isinstance(new, int):
        if old != new:
            yield breaking(subject, f"{where} was {old} and is {new}")
        return
    if UNKNOWN in (old, new):
        if old != new:
            said = f"{where} was {_say(old)} and is {_say(new)}"
            yield compatible(subject, said) if old == UNKNOWN else may_break(subject, said)
        return
    told = False
    for before, after in samples:
        values = _evaluate(old, before), _evaluate(new, after)
        if None in values:
            continue
        told = True
        if values[0] != values[1]:
            sizes = ", ".join(f"{name} {size}" for name, size in after.items() if name in _names(new))
            sizes = sizes or ", ".join(f"{name} {size}" for name, size in before.items() if name in _names(old))
            yield breaking(
                subject, f"{where} was {_say(old)} and is {_say(new)}: with {sizes} that is {values[0]} and {values[1]}"
            )
            return
    if not told and old != new:
        yield may_break(subject, f"{where} was {_say(old)} and is {_say(new)}")


def _names(axis: int | str) -> frozenset[str]:
    return frozenset() if isinstance(axis, int) else expression.parse(axis).names


def _evaluate(axis: int | str, sizes: Mapping[str, int]) -> int | None:
    if isinstance(axis, int):
        return axis
    try:
        value = expression.parse(axis)(sizes)
    except ExpressionError:
        return None
    return value if abs(value) < _LARGEST else None


def _samples(base: Contract, head: Contract, match: Match) -> Iterator[Sample]:
    """A few inputs that both take, with distinct sizes where the ranges allow it."""
    pairs = [(before, after) for before, afters in match.now.items() for after in afters]
    for turn in range(_SAMPLES):
        old, new = dict(match.fixed), dict(match.freed)
        for at, (before, after) in enumerate(pairs):
            size = _shared(Sizes.of(base.dims.get(before, _ANY)), Sizes.of(head.dims.get(after, _ANY)), turn * (7 + at))
            if size is not None:
                size = old.get(before, new.get(after, size))  # dims that are tied on one side are equal
                old.setdefault(before, size)
                new.setdefault(after, size)
        yield old, new


def _shared(one: Sizes, other: Sizes, at: int) -> int | None:
    """A size that both take: about the at-th of them; None where there is none."""
    step = math.lcm(one.step, other.step)
    low = -(-max(one.low, other.low) // step) * step
    ends = [end for end in (one.high, other.high) if end is not None]
    many = (min(ends) - low) // step + 1 if ends else at + 1
    return low + at % many * step if many > 0 and low < _LARGEST else None
