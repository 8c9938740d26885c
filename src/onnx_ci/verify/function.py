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
_HINT = "Run it with the exporter's optimizer switched off, and look at what the optimizer folded or fused."
_TRANSLATED = "See parity.divergence of the export for the operator and its line: write it in other operators."


@dataclass(slots=True)
class Judged:
    """What the twin showed: by case and output the verdict, or why there is none."""

    findings: list[Finding]
    verdicts: list[function.Verdict] = field(default_factory=list)


def judge(artifact: Artifact, listed: CaseList) -> Judged:
    """Judges the file on the smallest cases; what one of them shows stands, though a later one can't be told."""
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
    words = function.Words(rule=_RULE, graph="the file", hint=_HINT, blame=_blame(chosen))
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


def _blame(cases: Sequence[Case]) -> dict[str, tuple[str, str]]:
    """What the export's look at the unoptimized graph says of a failure, by output, and what to do about it."""
    outputs = [output for case in cases for output in case.outputs]
    return {output.name: _origin([one for one in outputs if one.name == output.name]) for output in outputs}


def _origin(outputs: Sequence[CaseOutput]) -> tuple[str, str]:
    told = [one for one in outputs if one.e_unoptimized is not None]
    if not told:
        return "", _HINT
    if all(function.within(one.e_unoptimized, one.rounding) for one in told):
        return "; the graph before the exporter's optimizer is, so the optimizer brought it in", _HINT
    return "; the graph before the exporter's optimizer is not either, so the translation brought it in", _TRANSLATED


def _beside(row: OutputFigures, verdict: function.Verdict | None) -> OutputFigures:
    if verdict is None:
        return row
    status = row.status if verdict.status == "skip" else worst([row.status, verdict.status])
    return replace(row, status=status, e_function=verdict.deviation.error, function_limit=verdict.limit)


def _skipped(why: str, what: str = "") -> Judged:
    return Judged([finding(_RULE, "skip", "", f"{what}not judged, since {why}")])
