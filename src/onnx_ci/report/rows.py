"""The rows of the parity and latency table, a leg each: what markdown, the page and the terminal all show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from onnx_ci.records.environment import Environment
from onnx_ci.records.model import CPU
from onnx_ci.records.report import Leg, Report
from onnx_ci.records.result import (
    COMPILED,
    EXPORT_TARGET,
    STAGES,
    Finding,
    OutputFigures,
    Result,
    Status,
    Timing,
    label,
)
from onnx_ci.report.merge import why_missing

Kind = Literal["broken", "changed", "new", "rest"]
KINDS: tuple[Kind, ...] = ("broken", "changed", "new", "rest")
State = Literal["pass", "warn", "fail", "error", "skip", "missing"]
ICONS: dict[State, str] = {"pass": "✅", "warn": "⚠️", "fail": "❌", "error": "❓", "skip": "⏭️", "missing": "❓"}
_AND = ", "


@dataclass(frozen=True, kw_only=True, slots=True)
class Latency:
    """Median latencies of one case.

    Attributes:
        runtime: ONNX Runtime, in milliseconds; None where it was not timed.
        eager: PyTorch eager on the same machine under the same conditions, in milliseconds; None where there is none.
        paired: Whether both were measured in one process in interleaved pairs, so that their ratio means something.
        compiled: torch.compile in the same pairs, in milliseconds; None where it was not asked for or not timed.
        base: How many times the base's time it takes, from interleaved pairs; None where there was no base to time.
        settled: Whether that could be told from what is allowed.
    """

    case: str
    runtime: float | None
    eager: float | None
    paired: bool
    compiled: float | None = None
    base: float | None = None
    settled: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One leg of the table.

    Attributes:
        kind: Of its model: where the row stands.
        mark: "changed" or "new" against the base; else "".
        state: The result's status, or "missing".
        stages: Stages that broke or could not be told, in order.
        warnings: How many findings warn.
        why: Why there is no result, where that is known.
        parity: The worst figures; None where no output was compared.
        golden: The worst golden finding; None where there is no golden.
        artifact: Digest.
    """

    kind: Kind
    mark: str
    label: str
    target: str
    required: bool
    state: State
    stages: list[str]
    warnings: int
    why: str
    parity: OutputFigures | None
    golden: Finding | None
    latency: Latency | None
    artifact: str | None

    @property
    def troubled(self) -> bool:
        """Whether somebody must look at it; what only did not run on a target that need not is no trouble."""
        return self.state in ("fail", "error") or (self.state == "missing" and self.required)


def rows(report: Report) -> list[Row]:
    """All legs: broken models first, then changed, new and the rest; inside a model export first, then by target."""
    exports = {label(one.model, one.variant): one for one in report.results if one.target == EXPORT_TARGET}
    found = [_row(one, exports.get(label(one.model, one.variant))) for one in report.results]
    found += [_missing(leg, why_missing(leg, report.results)) for leg in report.missing]
    required = {row.label for row in found if row.troubled and row.required}
    troubled = {row.label for row in found if row.troubled}
    kinds = {name: _kind(name, troubled, report) for name in {row.label for row in found}}
    marks = dict.fromkeys(report.changed, "changed") | dict.fromkeys(report.new, "new")
    return sorted(
        (replace(row, kind=kinds[row.label], mark=marks.get(row.label, "")) for row in found),
        key=lambda row: (
            KINDS.index(row.kind),
            row.label not in required,
            row.label,
            row.target != EXPORT_TARGET,
            row.target,
        ),
    )


def verdict(row: Row) -> str:
    """The verdict in plain words: "pass", "parity, golden", "no result"."""
    if row.why or row.state == "missing":
        return row.why or "no result"
    if row.state == "fail":
        return ", ".join(row.stages) or "broken"
    if row.state == "error":
        return "could not tell" + (f": {', '.join(row.stages)}" if row.stages else "")
    if row.state == "warn":
        return f"{row.warnings} warning{'' if row.warnings == 1 else 's'}" if row.warnings else "warning"
    return (row.why or "skipped") if row.state == "skip" else "pass"


def golden_word(finding: Finding) -> str:
    """What the golden says in a word: "pass", or the rule's own name."""
    return "" if finding.status == "pass" else finding.rule.rpartition(".")[2]


def findings(report: Report, *statuses: Status) -> list[tuple[Result, Finding]]:
    """Findings of these statuses with their results, in the order of the rows and of the stages.

    What several legs of a model say word for word is one fact, told once; its result's target names all of them.
    """
    order = {(row.label, row.target): at for at, row in enumerate(rows(report))}
    found = [(one, finding) for one in report.results for finding in one.findings if finding.status in statuses]

    def place(pair: tuple[Result, Finding]) -> tuple[bool, int, int, str, str]:
        result, finding = pair
        at = order[label(result.model, result.variant), result.target]
        return not result.required, at, STAGES.index(finding.stage), finding.rule, finding.subject

    return _once(sorted(found, key=place))


def legs_of(result: Result) -> set[str]:
    """The targets that a result of `findings` names."""
    return {*result.target.split(_AND)}


def _once(found: Sequence[tuple[Result, Finding]]) -> list[tuple[Result, Finding]]:
    """A leg that says it twice means two facts: the second is folded with the others' second."""
    told: dict[tuple[object, ...], list[tuple[Result, Finding]]] = {}
    times: Counter[tuple[object, ...]] = Counter()
    for result, finding in found:
        fact = finding.rule, finding.status, finding.subject, finding.message, finding.file, finding.line
        key = (label(result.model, result.variant), result.required, *fact)
        times[(*key, result.target)] += 1
        told.setdefault((*key, times[(*key, result.target)]), []).append((result, finding))
    return [
        (replace(ones[0][0], target=_AND.join(result.target for result, _ in ones)), ones[0][1])
        for ones in told.values()
    ]


def same_machine(one: Environment, other: Environment) -> bool:
    """Whether two environments look like one machine: only then may their latencies stand side by side."""
    return bool(one.cpu) and (one.cpu, one.cores, one.platform) == (other.cpu, other.cores, other.platform)


def _row(result: Result, export: Result | None) -> Row:
    golden = [finding for finding in result.findings if finding.stage == "golden" and finding.status != "skip"]
    bad = {finding.stage for finding in result.findings if finding.status == result.status}
    return Row(
        kind="rest",
        mark="",
        label=label(result.model, result.variant),
        target=result.target,
        required=result.required,
        state=result.status,
        stages=[stage for stage in STAGES if stage in bad] if result.status in ("fail", "error") else [],
        warnings=sum(finding.status == "warn" for finding in result.findings),
        why="",
        parity=max(result.parity, key=_badness) if result.parity else None,
        golden=max(golden, key=_finding_rank) if golden else None,
        latency=_latency(result, export),
        artifact=result.artifact,
    )


def _missing(leg: Leg, why: str) -> Row:
    return Row(
        kind="rest",
        mark="",
        label=label(leg.model, leg.variant),
        target=leg.target,
        required=leg.required,
        state="skip" if why else "missing",
        stages=[],
        warnings=0,
        why=why,
        parity=None,
        golden=None,
        latency=None,
        artifact=None,
    )


def _kind(name: str, troubled: Collection[str], report: Report) -> Kind:
    if name in troubled:
        return "broken"
    if name in report.changed:
        return "changed"
    return "new" if name in report.new else "rest"


def _finding_rank(finding: Finding) -> int:
    order: Mapping[Status, int] = {"skip": 0, "pass": 1, "warn": 2, "fail": 3, "error": 4}
    return order[finding.status]


def other_function(figures: OutputFigures) -> bool:
    """Whether the row is broken since the file in float64 is not the module's function, before any target has part."""
    error, limit = figures.e_function, figures.function_limit
    return figures.status in ("fail", "warn") and error is not None and limit is not None and not error <= limit


def _badness(figures: OutputFigures) -> tuple[int, bool, float]:
    """Broken ones first, then by how much of the limit is used up; NaN is the worst of all."""
    rank = {"error": 4, "fail": 3, "warn": 2}.get(figures.status, 1)
    function = other_function(figures)
    error, limit = (figures.e_function, figures.function_limit) if function else (figures.e_runtime, figures.limit)
    if error is None:
        return rank, function, -1.0
    used = error / limit if limit else error
    return rank, function, math.inf if math.isnan(used) else used


def _latency(result: Result, export: Result | None) -> Latency | None:
    runtime = _first(result.latency, lambda timing: timing.runner == "onnxruntime")
    eager = _first(result.latency, lambda timing: timing.runner == "eager" and _alike(timing, runtime))
    if eager or result.target == EXPORT_TARGET or runtime is None:
        found = _pair(runtime, eager, paired=runtime is not None and eager is not None)
        compiled = _first(result.latency, lambda timing: timing.runner == COMPILED and _alike(timing, runtime))
        found = replace(found, compiled=compiled.p50_ms) if found and compiled else found
        return _against_base(found, result)
    elsewhere = None
    if export and runtime.provider == CPU and same_machine(result.environment, export.environment):
        elsewhere = _first(export.latency, lambda timing: timing.runner == "eager" and _alike(timing, runtime))
    return _against_base(_pair(runtime, elsewhere, paired=False), result)


def _against_base(found: Latency | None, result: Result) -> Latency | None:
    """With the ratio that the comparison with the base found; results come from outside, so it may be anything."""
    for one in result.findings:
        ratio = one.data.get("ratio")
        if found and one.rule == "latency.regression" and isinstance(ratio, float) and 0 < ratio < math.inf:
            return replace(found, base=ratio, settled=one.status != "warn")
    return found


def _pair(runtime: Timing | None, eager: Timing | None, *, paired: bool) -> Latency | None:
    shown = runtime or eager
    if shown is None:
        return None
    return Latency(
        case=shown.case,
        runtime=runtime.p50_ms if runtime else None,
        eager=eager.p50_ms if eager else None,
        paired=paired,
    )


def _alike(timing: Timing, other: Timing | None) -> bool:
    return other is None or (timing.case, timing.threads, timing.transfers) == (
        other.case,
        other.threads,
        other.transfers,
    )


def _first(timings: Sequence[Timing], wanted: Callable[[Timing], bool]) -> Timing | None:
    return next((timing for timing in timings if wanted(timing)), None)
