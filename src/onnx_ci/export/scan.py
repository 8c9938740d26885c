"""Finds the sizes at which forward changes what it does, within a budget of time, and makes plans of both sides."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from onnx_ci.export import jumps, meta, sampling
from onnx_ci.export.affordable import Fits
from onnx_ci.export.axes import Sizes
from onnx_ci.export.jumps import Trace, Trust
from onnx_ci.export.meta import NoMetaForm, Run
from onnx_ci.export.sizes import Plan, Range
from onnx_ci.export.subject import Subject
from onnx_ci.export.types import NamedInputs
from onnx_ci.records.result import Finding, finding

MOST_SECONDS = 1.0
SHARE_OF_LIMIT = 0.05
MOST_PLANS = 12
_MOST_A_DIM = 4
_DIAGONAL = 48
_DRAWS = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be scanned.

    Attributes:
        ranges: The dims that may vary.
        base: The example's size of every dim.
        planned: The sizes that a case exists for.
        pairs: Dims that lie side by side in a tensor.
        fits: Whether a case of these sizes is within the budget of memory and work.
        make: Inputs of these sizes, for a module that can't be run without data.
    """

    ranges: Mapping[str, Range]
    base: Sizes
    planned: Sequence[Sizes]
    pairs: Sequence[tuple[str, str]]
    fits: Fits
    make: Callable[[Mapping[str, int]], NamedInputs]


@dataclass(slots=True)
class _Scan:
    """A scan under way: what runs forward, until when, and what was seen."""

    run: Run
    end: float
    clock: Callable[[], float]
    looks: int = 0
    trust: Trust = field(default_factory=Trust)
    operators: set[object] = field(default_factory=set)
    plans: list[Plan] = field(default_factory=list)
    jumps: int = 0

    def look(self, dims: Mapping[str, int], until: float) -> Trace | None:
        if self.clock() > until:
            return None
        self.looks += 1
        trace = self.run(dims)
        self.operators.add(trace.operators)
        return trace


def scan(
    subject: Subject, asked: Asked, outputs: Sequence[str], clock: Callable[[], float] = time.process_time
) -> tuple[list[Plan], Finding]:
    """Runs forward over the ranges and plans cases on both sides of what changes; the finding says how far it came.

    Args:
        subject: The module and its example.
        asked: The ranges, and what is planned already.
        outputs: The names of the module's outputs, in their order.
        clock: In seconds; of this process, so that a busy machine makes no other cases.
    """
    budget = min(MOST_SECONDS, SHARE_OF_LIMIT * subject.spec.time_limit)
    start = clock()
    if not asked.ranges:
        return [], finding("contract.meta", "pass", "", "no dim varies, so that no size can jump")
    try:
        run = meta.meta_run(subject)
        start = clock()
        found = _Scan(run, start + budget, clock)
        _scan(found, asked, outputs)
        why = ""
    except NoMetaForm as error:
        why = str(error)
        found = _Scan(meta.real_run(subject, asked.make), clock() + budget, clock)
        smaller = replace(asked, ranges={name: _within(name, one, asked) for name, one in asked.ranges.items()})
        found.trust = _trust(found, asked.base, budget)
        _scan(found, smaller, outputs)
    return found.plans, _finding(found, why, clock() - start, budget)


def _scan(found: _Scan, asked: Asked, outputs: Sequence[str]) -> None:
    most = max(2, min(_MOST_A_DIM, MOST_PLANS // len(asked.ranges)))
    waiting = len(asked.ranges) + bool(asked.pairs)
    for name, one in asked.ranges.items():
        now = found.clock()
        until = now + max(found.end - now, 0.0) / waiting
        waiting -= 1

        def look(size: int, name: str = name, until: float = until) -> Trace | None:
            return found.look(asked.base | {name: size}, until)

        def fits(size: int, name: str = name) -> bool:
            return asked.fits(asked.base | {name: size})

        traces = sampling.sample(one, look)
        kinds = jumps.find(traces, one.step, outputs, found.trust)
        found.jumps += len(kinds)
        known = [dims[name] for dims in asked.planned if dims == asked.base | {name: dims[name]}]
        kinds = [jumps.fitting(kind, fits) for kind in kinds]
        for choice in jumps.choose(kinds, [*known, asked.base[name]], asked.base[name], most):
            dims = asked.base | {name: choice.size}
            found.plans.append(Plan(f"{name}-jump-{choice.size}", choice.why.format(dim=name), dims))
    for pair in asked.pairs:
        _diagonal(found, asked, pair)


def _diagonal(found: _Scan, asked: Asked, pair: tuple[str, str]) -> None:
    """Both dims from their minimum to their maximum at once: a branch on both together shows here only."""
    first, second = (asked.ranges[name] for name in pair)
    before: Sizes | None = None
    known = set(found.operators)
    if not found.trust.operators or not _interact(found, asked, pair):
        return
    for part in range(_DIAGONAL + 1):
        dims = asked.base | {name: _between(one, part) for name, one in zip(pair, (first, second), strict=True)}
        trace = found.look(dims, found.end)
        if trace is None:
            return
        if trace.operators not in known and before is not None:
            known.add(trace.operators)
            found.jumps += 1
            at = ", ".join(f"{name} {dims[name]}" for name in pair)
            earlier = ", ".join(f"{name} {before[name]}" for name in pair)
            said = f"refuses {at}" if trace.error else f"runs other operators at {at} than at {earlier}"
            for sizes in (before, dims):
                label = "-".join(f"{name}-{sizes[name]}" for name in pair)
                if asked.fits(sizes) and sizes not in asked.planned and len(found.plans) < MOST_PLANS:
                    found.plans.append(Plan(f"jump-{label}", f"forward {said}", sizes))
        before = dims


def _interact(found: _Scan, asked: Asked, pair: tuple[str, str]) -> bool:
    """Whether some number depends on both dims together: its change with one is another at the other's far end."""
    corners = []
    for ends in ((False, False), (False, True), (True, False), (True, True)):
        dims = dict(asked.base)
        for name, far in zip(pair, ends, strict=True):
            dims[name] = asked.ranges[name].top if far else asked.ranges[name].min
        trace = found.look(dims, found.end)
        if trace is None:
            return False
        corners.append(trace)
    a, b, c, d = corners
    if not a.operators == b.operators == c.operators == d.operators:
        return True
    rows = zip(a.numbers, b.numbers, c.numbers, d.numbers, strict=True)
    return any(p - q - r + s != 0 for row in rows for p, q, r, s in zip(*row, strict=True))


def _between(one: Range, part: int) -> int:
    return one.min + round((one.top - one.min) / one.step * part / _DIAGONAL) * one.step


def _within(name: str, one: Range, asked: Asked) -> Range:
    """The range as far as its inputs fit into the budget of memory and work: these runs are real."""
    size = one.top
    while size > one.example and not asked.fits(asked.base | {name: size}):
        size = one.example + (size - one.example) // 2 // one.step * one.step
    return replace(one, max=max(size, one.example))


def _trust(found: _Scan, base: Sizes, budget: float) -> Trust:
    """What stays the same when the values are others; nothing does where there is no time to look."""
    start = found.clock()
    first = found.look(base, found.end)
    others = [found.look(base, found.end) for _ in range(_DRAWS)]
    if first is None or found.clock() - start > budget / 2:
        found.end = start
        return Trust(False, False, False)
    told = [one for one in others if one is not None]
    return Trust(
        operators=all(one.operators == first.operators for one in told),
        numbers=all(one.numbers == first.numbers for one in told),
        outputs=all(one.outputs == first.outputs for one in told),
    )


def _finding(found: _Scan, why: str, seconds: float, budget: float) -> Finding:
    device = "the module itself" if why else "the meta device"
    over = f", the end of its {budget:g} s" if found.clock() > found.end else ""
    said = f"{found.looks} sizes on {device} in {seconds:.2f} s{over}: {_counted(found)}"
    said += f"; first: {found.plans[0].why}" if found.plans else ""
    data = {"looks": found.looks, "seconds": round(seconds, 4), "jumps": found.jumps, "cases": len(found.plans)}
    if why:
        said = f"forward has no meta form ({why}), so it was run for real: {said}"
        return finding("contract.meta", "skip", "", said, data=data)
    return finding("contract.meta", "pass", "", f"forward was run at {said}", data=data)


def _counted(found: _Scan) -> str:
    kinds = f"{found.jumps} kind{'' if found.jumps == 1 else 's'} of jump" if found.jumps else "no jump"
    count = len(found.plans)
    return kinds + (f", {count} case{'' if count == 1 else 's'} made of them" if found.jumps else "")
