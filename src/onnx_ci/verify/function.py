"""Whether the file is the same function as the module: its twin in float64 against the oracle that the export stored.

The target has no part in it. Every leg tells it all the same, since it takes one run a case, and a leg that fails must
not leave the reader to guess whether the provider or the file is to blame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from onnx_ci.artifact import tensors
from onnx_ci.artifact.layout import Artifact, ArtifactError
from onnx_ci.numerics import function
from onnx_ci.numerics.deviation import deviations
from onnx_ci.numerics.parity import largest_magnitude
from onnx_ci.records.cases import Case, CaseList, CaseOutput
from onnx_ci.records.result import Finding, OutputFigures, finding, worst
from onnx_ci.twin import Twin, Unoracled, measured

_RULE = "parity.function"
_HINT = (
    "See parity.divergence of the export for what the optimizer folded, fused or removed; without its optimizer "
    "(export.optimize = false) the exporter gives the other graph."
)
_OLDER = (
    "Export it with exporter = 'dynamo' too, whose graph is looked at before its optimization as well. The older "
    "exporter's own constant folding is switched off by do_constant_folding=False in export_kwargs()."
)
_CHANGED = (
    "Export it again; where a step after the export changes the file on purpose, that step changes what it computes."
)
_TRANSLATED = "See parity.divergence of the export, which tells capture and translation apart, and names the line."

_SAME = 2.0
"""By how much the error of one and the same file may grow from the export's machine to this one."""


@dataclass(slots=True)
class Judged:
    """What the twin showed: by case and output the verdict, or why there is none."""

    findings: list[Finding]
    verdicts: list[function.Verdict] = field(default_factory=list)


def judge(artifact: Artifact, listed: CaseList, exporter: str = "dynamo") -> Judged:
    """Judges the file on the smallest cases; what one of them shows stands, though a later one can't be told.

    Args:
        artifact: Whose file is run.
        listed: Its cases.
        exporter: Which one wrote it, for what is advised.
    """
    chosen = function.chosen(listed.cases)
    if not chosen:
        why = next((case.unoracled for case in listed.cases if case.unoracled), "there is no case to run")
        return _skipped(f"no case has outputs in float64: {why}")
    verdicts: list[function.Verdict] = []
    by_reference: set[str] = set()
    ended = ""
    try:
        twin = Twin.open(artifact.model)
        for case in function.affordable(chosen):
            found, operators = _judge(twin, artifact, case, listed.made)
            verdicts += found
            by_reference |= operators
    except Unoracled as error:
        ended = str(error)
    except ArtifactError as error:
        ended = f"a case can't be read: {error.what}"
    if ended and not verdicts:
        return _skipped(ended)
    hint = _OLDER if exporter == "torchscript" else _HINT
    words = function.Words(rule=_RULE, graph="the file", hint=hint, blame=_blame(chosen, verdicts))
    findings = function.findings(verdicts, words, sorted(by_reference))
    return Judged(findings + (_skipped(ended, "further cases were ").findings if ended else []), verdicts)


def shown(figures: Sequence[OutputFigures], judged: Judged) -> list[OutputFigures]:
    """The figures of the target with those of the function beside them; a row is as bad as the worse of the two."""
    known = {(one.deviation.case.name, one.deviation.output): one for one in judged.verdicts}
    return [_beside(row, known.get((row.case, row.output))) for row in figures]


def _judge(
    twin: Twin, artifact: Artifact, case: Case, made: list[str] | None
) -> tuple[list[function.Verdict], set[str]]:
    folder = artifact.case_folder(case.index)
    feeds, oracle = tensors.read_values(folder, "input"), tensors.read_values(folder, "oracle")
    run = twin.run(feeds)
    expected, unit = tensors.read_values(folder, "output"), largest_magnitude(feeds)
    found = deviations(case, run.outputs, oracle, expected, unit)
    outputs = {output.name: output for output in case.outputs}
    judged = function.settled(
        found,
        {name: output.rounding for name, output in outputs.items()},
        measured(twin, feeds, made or ()),
        whole=lambda name: made is not None and name in outputs and outputs[name].e_unoptimized is not None,
        exact=not run.by_reference,
    )
    return judged, set(run.by_reference)


def _blame(cases: Sequence[Case], verdicts: Sequence[function.Verdict]) -> dict[str, tuple[str, str]]:
    """By output, what the export's look at both graphs says of a failure, and what to do about it."""
    known = {(case.index, output.name): output for case in cases for output in case.outputs}
    told = {key: output for key, output in known.items() if output.e_unoptimized is not None}
    errors: dict[str, list[tuple[float, float | None]]] = {}
    for one in (one.deviation for one in verdicts if one.status in ("warn", "fail")):
        if output := told.get((one.case.index, one.base)):
            errors.setdefault(one.base, []).append((one.error, output.e_exported))
    return {name: _origin([one for (_, other), one in told.items() if other == name], errors[name]) for name in errors}


def _origin(outputs: Sequence[CaseOutput], errors: Sequence[tuple[float, float | None]]) -> tuple[str, str]:
    """Args: what the export knew of an output, and by failing case its error here and when it was exported."""
    if not all(function.within(one.e_unoptimized, one.rounding) for one in outputs):
        return (
            "; the graph before the exporter's optimizer is not either, so capture or translation brought it in",
            _TRANSLATED,
        )
    grown = [then is not None and not here <= _SAME * then for here, then in errors]
    if any(grown):
        return "; as it was exported it is, so a change of the file since then brought it in", _CHANGED
    if any(then is None for _, then in errors):
        who = "the optimizer or a later change of the file"
        return f"; the graph before the exporter's optimizer is, so {who} brought it in", _HINT
    return "; the graph before the exporter's optimizer is, so the optimizer brought it in", _HINT


def _beside(row: OutputFigures, verdict: function.Verdict | None) -> OutputFigures:
    if verdict is None:
        return row
    status = row.status if verdict.status == "skip" else worst([row.status, verdict.status])
    return replace(row, status=status, e_function=verdict.deviation.error, function_limit=verdict.limit)


def _skipped(why: str, what: str = "") -> Judged:
    return Judged([finding(_RULE, "skip", "", f"{what}not judged, since {why}")])
