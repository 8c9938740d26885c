"""Whether a graph is the same function as the module: its twin in float64 against the oracle, which no dtype blurs.

What healthy graphs differ by is the rounding of constants that the exporter made; the limit is a few times what such
rounding was measured to do. See docs/decisions/float64-twin.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from onnx_ci.numerics import special
from onnx_ci.numerics.deviation import FLOOR, Deviation
from onnx_ci.numerics.words import case_text, counted, sci
from onnx_ci.records.base import record
from onnx_ci.records.cases import Case
from onnx_ci.records.result import Finding, Status, finding

_TIMES = 4.0  # healthy models reach 1.95 times what four draws of the rounding do
_BACKSTOP = 1e-7  # where rounding could not be measured
_CASES = 3
_SECONDS = 60.0
_RANK: dict[Status, int] = {"skip": 0, "pass": 1, "warn": 2, "error": 3, "fail": 4}


@record
class Verdict:
    """A deviation and what it may be.

    Attributes:
        rounding: What rounding of the exporter's constants can do, as relL2; None where it was not measured.
        excused: Why it passes beyond its limit, or why nothing can be told.
    """

    deviation: Deviation
    rounding: float | None
    limit: float
    status: Status
    excused: str = ""


@record
class Words:
    """How the rules that judge so differ.

    Attributes:
        rule: Its id.
        graph: What was run, as the subject of a sentence.
        blame: By output, what is known of a failure's origin, and what to do about it instead of `hint`.
    """

    rule: str
    graph: str
    hint: str
    blame: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def chosen(cases: Sequence[Case]) -> list[Case]:
    """The cases to run: a real one, and the smallest of other sizes, so that a size-bound fault shows.

    A dim of 1 hides faults: attention over a single token is the same whatever its queries are. So the real one has as
    few of them as there are; where it has some, one of the others has none if it can be. Left out are cases without an
    oracle, and those with empty outputs only, of which nothing can be told.
    """
    able = [case for case in cases if not (case.refused or case.unoracled or case.is_special) and _holds_values(case)]
    full = sorted(able, key=lambda case: (_singles(case), *_by_size(case)))
    made = [case for case in full if case.origin == "boundary"]
    found = [case for case in full if case.origin != "boundary"][:1]
    first = made[:1] if not found or _singles(found[0]) else []
    for case in (*first, *sorted(made, key=_by_size)):
        if len(found) < _CASES and all(case.dims != other.dims for other in found):
            found.append(case)
    return found


def affordable(cases: Sequence[Case], clock: Callable[[], float] = time.monotonic) -> Iterator[Case]:
    """The same cases, smallest first, until a minute is over: a loop of thousands of steps takes its time."""
    start = clock()
    for at, case in enumerate(sorted(cases, key=_by_size)):
        if at and clock() - start > _SECONDS:
            return
        yield case


def judged(deviation: Deviation, rounding: float | None, *, whole: bool, exact: bool = True) -> Verdict:
    """Judges one deviation.

    Args:
        deviation: By `deviations`.
        rounding: The largest relL2 (for exact outputs: share) that rounding of the exporter's constants was seen to
            cause; infinite where it changes a shape; None where nobody measured it.
        whole: Whether the graph before optimization was looked at too. A chain of constants that was folded in float32
            is no longer there to be measured in the file.
        exact: Whether every operator ran in float64 for certain. onnx's reference, which takes those that nothing else
            does, computes some in float32 and some wrong; what it gives is never enough for a failure.
    """
    limit = _limit(deviation, rounding, whole and exact)
    status, excused = _status(deviation, rounding, limit, whole)
    if status == "fail" and not exact:
        status = "warn"
    return Verdict(deviation=deviation, rounding=rounding, limit=limit, status=status, excused=excused)


def settled(
    found: Sequence[Deviation],
    before: Mapping[str, float | None],
    measures: Iterable[Mapping[str, float]],
    *,
    whole: Callable[[str], bool],
    exact: bool,
) -> list[Verdict]:
    """Judges the deviations of a graph in one case, with rounding measured no more closely than it takes to pass.

    Args:
        found: The deviations.
        before: What rounding is known to do, by output; None where nobody measured it.
        measures: What it does in this graph, closer and closer; the next is asked for where something still fails.
        whole: By output, as in `judged`.
        exact: As in `judged`.
    """

    def verdicts(rounding: Mapping[str, float | None]) -> list[Verdict]:
        return [judged(one, rounding.get(one.base), whole=whole(one.base), exact=exact) for one in found]

    reached = verdicts(before)
    for sizes in measures if _open(reached) else ():
        reached = verdicts({**before, **{name: max(size, before.get(name) or 0.0) for name, size in sizes.items()}})
        if not _open(reached):
            break
    return reached


def _open(verdicts: Sequence[Verdict]) -> bool:
    return any(one.status in ("warn", "fail") for one in verdicts)


def within(error: float | None, rounding: float | None) -> bool:
    """Whether an error is within what a graph may have whose rounding is known."""
    return error is not None and error <= allowed(rounding)


def allowed(rounding: float | None, least: float = FLOOR) -> float:
    """What a float value may err whose rounding is known."""
    return max(least, _TIMES * (rounding or 0.0))


def findings(verdicts: Sequence[Verdict], words: Words, by_reference: Sequence[str] = ()) -> list[Finding]:
    """One finding an output, with its worst case; operators that only onnx's reference could run are named."""
    grouped: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        grouped.setdefault(verdict.deviation.output, []).append(verdict)
    found = [_finding(output, ones, words, sorted(by_reference)) for output, ones in grouped.items()]
    return special.explained(found, [one.deviation.case for one in verdicts])


def _limit(deviation: Deviation, rounding: float | None, whole: bool) -> float:
    if deviation.kind == "zero":
        return deviation.floor
    if deviation.kind == "exact":
        return allowed(rounding, 0.0)
    return allowed(rounding, deviation.floor if whole else max(_BACKSTOP, 2 * deviation.e_torch))


def _status(deviation: Deviation, rounding: float | None, limit: float, whole: bool) -> tuple[Status, str]:
    if rounding is not None and math.isinf(rounding) and deviation.doubtful:
        return "skip", "rounding of constants that the exporter made changes the shapes inside"
    if deviation.fault:
        return "fail", ""
    if deviation.error <= limit:
        return "pass", ""
    if deviation.kind == "float" and deviation.own <= deviation.e_torch / 2:
        return "pass", "PyTorch in its own dtype deviates in the very same way"
    return ("warn" if deviation.kind == "exact" and not whole else "fail"), ""


def _finding(output: str, ones: Sequence[Verdict], words: Words, by_reference: list[str]) -> Finding:
    worst = max(ones, key=lambda one: (_RANK[one.status], _share(one)))
    bad = [one for one in ones if one.status == worst.status] if worst.status in ("warn", "fail") else []
    case = worst.deviation.case
    where = case_text(case.name, case.dims)
    blame, hint = words.blame.get(worst.deviation.base, ("", words.hint))
    if bad:
        message = f"{output}: {words.graph} is not the module's function: {_told(worst)}; worst in {where}"
        message += f"; {len(bad)} of {counted(len(ones), 'case')}" if len(ones) > 1 else ""
        message += blame
    else:
        message = f"{output}: {_told(worst)}" + (f", but {worst.excused}" if worst.excused else "")
        message += f"; worst of {len(ones)} cases: {where}" if len(ones) > 1 else f" in {where}"
    if by_reference:
        message += f"; {', '.join(by_reference)} was run by onnx's reference, which may err itself"
    data = {
        "e": _finite(worst.deviation.error),
        "limit": _finite(worst.limit),
        "rounding": _finite(worst.rounding),
        "case": case.name,
        "cases": [one.deviation.case.name for one in bad],
        "by_reference": by_reference,
    }
    return finding(words.rule, worst.status, output, message, hint=hint if bad else "", data=data)


def _told(one: Verdict) -> str:
    """The figure that decides, and what it may be."""
    deviation = one.deviation
    if deviation.fault:
        return f"in float64 {deviation.fault}"
    if deviation.kind == "exact":
        if not deviation.error:
            return "equal in float64"
        return f"{deviation.error:.2%} of its elements differ in float64, allowed {one.limit:.2%}"
    if deviation.kind == "zero":
        return (
            f"rms error {sci(deviation.error)} in float64, allowed {sci(one.limit)} since it is zero but for rounding"
        )
    text = f"relL2 {sci(deviation.error)} in float64, allowed {sci(one.limit)}"
    if one.rounding:
        text += f" (rounding of the exporter's constants: {sci(one.rounding)})"
    return text


def _share(one: Verdict) -> float:
    if one.deviation.fault:
        return math.inf
    return one.deviation.error / one.limit if one.limit else one.deviation.error


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _holds_values(case: Case) -> bool:
    return any(math.prod(output.shape) for output in case.outputs)


def _singles(case: Case) -> int:
    return sum(size <= 1 for size in case.dims.values())


def _by_size(case: Case) -> tuple[int, int]:
    return _size(case), case.index


def _size(case: Case) -> int:
    return math.prod(case.dims.values())
