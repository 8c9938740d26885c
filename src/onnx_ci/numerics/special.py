"""What cases of special values add to the verdict of the others: what is broken, in full or as a warning at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnx_ci.numerics.comparison import CaseComparison, OutputComparison
from onnx_ci.records.cases import Case
from onnx_ci.records.model import ParitySpec
from onnx_ci.records.result import Finding, OutputFigures, Status

_RANK: dict[Status, int] = {"skip": 0, "pass": 0, "warn": 1, "fail": 2, "error": 3}
_LEFT = ("parity.ill-conditioned", "parity.unoracled", "parity.names")
"""What the other cases tell of the output already, or what is expected of such values."""
_TIMES = 10.0
"""How many times as far as PyTorch's own answer at ties a file's may be off: as all limits of special values."""
ARBITRARY = (
    "a query sees no key (its whole row is masked), so that what comes of it is arbitrary and kernels differ in it: "
    "read no output at a masked place, and name cases with the masks that production sends"
)
_NAN = "PyTorch's own answer is NaN there"


def groups(comparisons: Sequence[CaseComparison], spec: ParitySpec) -> dict[str, list[CaseComparison]]:
    """The cases by why they are only advisory; under "" those that are judged in full, and outputs without excuse."""
    found: dict[str, list[CaseComparison]] = {}
    for one in comparisons:
        nan = any(item.nans and item.base not in spec.allow_nan for item in one.outputs)
        advisory = one.case.advisory or (_NAN if nan else "")
        firm = [item for item in one.outputs if advisory and not nan and _is_unexcused(item, one.case)]
        if firm:
            found.setdefault("", []).append(replace(one, outputs=firm))
        rest = [item for item in one.outputs if item not in firm]
        if rest or not firm:
            found.setdefault(advisory, []).append(replace(one, outputs=rest))
    return found


def _is_unexcused(item: OutputComparison, case: Case) -> bool:
    """Whether it is off by far more than PyTorch's own answer moves, or not finite where that stays finite."""
    known = next((one for one in case.outputs if one.name == item.base and one.firm), None)
    if known is None:
        return False
    if item.fault is not None:
        return item.fault.rule == "parity.nonfinite"
    return item.floats is not None and known.sway is not None and item.floats.max_abs > _TIMES * known.sway


def told(findings: Sequence[Finding], group: Sequence[CaseComparison], advisory: str) -> list[Finding]:
    """What is broken, as a warning where the cases are advisory; NaN of PyTorch's own is only shown there."""
    kept = [one for one in findings if one.status not in ("pass", "skip") and one.rule not in _LEFT]
    if not advisory:
        return kept
    unasked = bool(group[0].case.advisory)
    return [_softened(one, advisory, unasked=unasked) for one in kept]


def _softened(one: Finding, advisory: str, *, unasked: bool) -> Finding:
    if one.rule == "parity.reference-nan" and unasked:
        return replace(one, status="pass", message=f"{one.message}; but {advisory}", hint="")
    if one.status != "fail":
        return one
    return replace(one, status="warn", message=f"{one.message}; a warning only, since {advisory}")


def explained(findings: Sequence[Finding], cases: Sequence[Case]) -> list[Finding]:
    """What fails only in cases in which a query sees nothing says so."""
    blind = {case.name for case in cases if case.blind}
    return [
        replace(one, message=f"{one.message}; in each such case {ARBITRARY}")
        if one.status == "fail" and blind and blind.issuperset(_cases(one))
        else one
        for one in findings
    ]


def _cases(one: Finding) -> list[str]:
    """Those that fail; of findings on none, one that nobody knows."""
    return one.data.get("cases") or [one.data.get("case", "")]


def rows(figures: Sequence[OutputFigures], advisory: str) -> list[OutputFigures]:
    """The figures of the cases, with the same verdict."""
    return [
        replace(row, status="warn", note="; ".join(filter(None, (row.note, f"advisory: {advisory}"))))
        if advisory and row.status == "fail"
        else row
        for row in figures
    ]


def merged(findings: Sequence[Finding], more: Sequence[Finding]) -> list[Finding]:
    """One finding a rule and output: the worse one. A layer that holds everywhere is told of no output."""
    made = list(findings)
    for one in more:
        known = [other for other in made if other.rule == one.rule and other.subject in (one.subject, "")]
        if all(_RANK[other.status] < _RANK[one.status] for other in known):
            at = made.index(known[0]) if known else len(made)
            made = [other for other in made if not any(other is out for out in known)]
            made.insert(min(at, len(made)), one)
    return made
