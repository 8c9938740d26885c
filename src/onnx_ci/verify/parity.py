"""Stage parity: runs every case in a session and hands the outputs to the judges, the tensors of one case at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnx_ci.artifact import log, tensors
from onnx_ci.artifact.layout import Artifact, ArtifactError
from onnx_ci.artifact.tensors import Value
from onnx_ci.numerics import parity
from onnx_ci.numerics.parity import CaseComparison
from onnx_ci.numerics.words import case_text
from onnx_ci.records.cases import Case
from onnx_ci.records.model import ParitySpec
from onnx_ci.records.result import Finding, OutputFigures, finding
from onnx_ci.verify.scores import InnerScores
from onnx_ci.verify.session import RuntimeFault, Session

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class CaseRuns:
    """What running the cases gave.

    Attributes:
        not_told: Case name and why nothing is known about it: unreadable, or no memory.
        unused: Inputs of the cases that the file does not take.
    """

    comparisons: list[CaseComparison] = field(default_factory=list)
    not_told: list[tuple[str, str]] = field(default_factory=list)
    unused: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Findings and figures of one session."""

    findings: list[Finding]
    figures: list[OutputFigures]

    @property
    def passed(self) -> bool:
        """Whether nothing failed and everything could be told."""
        return bool(self.findings) and not any(one.status in ("fail", "error") for one in self.findings)


def read_inputs(artifact: Artifact, case: Case) -> dict[str, Value]:
    """Reads the inputs of a case by name."""
    return tensors.read_values(artifact.case_folder(case.index), "input")


def run_cases(
    session: Session,
    artifact: Artifact,
    cases: Sequence[Case],
    spec: ParitySpec,
    *,
    inner: InnerScores | None = None,
    twice: bool = True,
) -> CaseRuns:
    """Runs and compares every case that PyTorch could run.

    Args:
        session: On the target.
        artifact: Where the cases lie.
        cases: To run.
        spec: How outputs are judged.
        inner: Scores inside the graph, for exact outputs that flip.
        twice: Whether a second run shows if the bits stay.
    """
    runs = CaseRuns()
    for case in cases:
        if case.refused:
            continue
        log.say(f"ONNX Runtime runs {case_text(case.name, case.dims)}")
        try:
            runs.comparisons.append(_compare(session, artifact, case, spec, runs.unused, inner, twice=twice))
        except ArtifactError as error:
            runs.not_told.append((case.name, str(error).replace(f"{artifact.folder}{os.sep}", "")))
        except RuntimeFault as fault:
            if fault.kind == "memory":
                runs.not_told.append((case.name, f"not enough memory: {fault.message}"))
            else:
                runs.comparisons.append(parity.not_run(case, fault.message))
    if inner is not None:
        inner.close()
    return runs


def _compare(
    session: Session,
    artifact: Artifact,
    case: Case,
    spec: ParitySpec,
    unused: dict[str, None],
    inner: InnerScores | None,
    *,
    twice: bool,
) -> CaseComparison:
    folder = artifact.case_folder(case.index)
    inputs = read_inputs(artifact, case)
    expected = tensors.read_values(folder, "output")
    if not expected:
        raise ArtifactError("it has no outputs of PyTorch", where=folder.name)
    oracle = None if case.unoracled else tensors.read_values(folder, "oracle") or None
    feeds, left = feeds_for(session, inputs)
    unused.update(dict.fromkeys(left))
    actual = session.run(feeds)
    again = session.run(feeds) if twice else None
    unit = parity.largest_magnitude(inputs)
    compared = parity.compare_case(case, expected, actual, oracle, spec, again=again, unit=unit)
    flipped = _flipped(compared)
    if inner is None or spec.ties == "exact" or not flipped:
        return compared
    scores = inner.of(flipped, feeds)
    if any(scores.values()):
        compared = parity.compare_case(case, expected, actual, oracle, spec, again=again, unit=unit, inner=scores)
    inner.give_up(_flipped(compared))
    return compared


def _flipped(compared: CaseComparison) -> list[str]:
    """Exact outputs with differences that nothing explains yet."""
    return list(dict.fromkeys(one.base for one in compared.outputs if one.exact is not None and one.exact.differ))


class Answers:
    """What a session answers to a case, without a word on whether it is right."""

    def __init__(self, session: Session, artifact: Artifact) -> None:
        self._session, self._artifact = session, artifact

    def __call__(self, case: Case) -> dict[str, Value] | str | None:
        """The outputs; what the runtime said where it stops; None where nothing can be told."""
        try:
            return self._session.run(feeds_for(self._session, read_inputs(self._artifact, case))[0])
        except ArtifactError:
            return None
        except RuntimeFault as fault:
            return None if fault.kind in ("memory", "device") else fault.message


def feeds_for(session: Session, inputs: Mapping[str, Value]) -> tuple[dict[str, Value], list[str]]:
    """Picks what the file takes, by name; and the names that it does not take.

    Raises:
        RuntimeFault: An input of the file is not among them.
    """
    missing = [name for name in session.inputs if name not in inputs]
    if missing:
        raise RuntimeFault("bad-feed", f"the case has no input {', '.join(missing)}, which the file takes")
    return {name: inputs[name] for name in session.inputs}, [name for name in inputs if name not in session.inputs]


def judge(runs: CaseRuns, cases: Sequence[Case], spec: ParitySpec, today: str) -> Verdict:
    """Judges the runs of the session on the target."""
    findings, figures = parity.judge(runs.comparisons, spec, today=today)
    refused = [case for case in cases if case.refused]
    if refused:
        listed = "; ".join(f"{case.name}: {' '.join(case.refused.split())[:200]}" for case in refused[:_SHOWN])
        message = f"{len(refused)} of {len(cases)} cases were not run, since PyTorch itself refuses them: {listed}"
        data = {"cases": [case.name for case in refused]}
        findings.append(finding("parity.refused", "skip", "", message, data=data))
    if runs.not_told:
        listed = "; ".join(f"{name}: {why}" for name, why in runs.not_told[:_SHOWN])
        message = f"nothing is known of {len(runs.not_told)} cases: {listed}"
        data = {"cases": [name for name, _ in runs.not_told]}
        findings.append(finding("parity.not-told", "error", "", message, data=data))
    if runs.unused:
        names = ", ".join(runs.unused)
        message = f"the cases hold inputs that the file does not take: {names}"
        hint = "They have no effect on the graph, or became constants of it; see the contract findings of the export."
        findings.append(finding("parity.unused-input", "warn", names, message, hint=hint))
    return Verdict(findings, figures)


def judge_unoptimized(runs: CaseRuns, optimized: Verdict, spec: ParitySpec, today: str) -> Finding:
    """Says whether the graph as it is in the file agrees, and so whether a fault lies in it or in its optimization."""
    findings, _ = parity.judge(runs.comparisons, spec, today=today)
    broken = _faults_of_the_file(findings)
    rule = "parity.unoptimized"
    if runs.not_told or any(one.status == "error" for one in findings):
        why = runs.not_told[0][1] if runs.not_told else findings[0].message
        return finding(rule, "warn", "", f"the unoptimized graph could not be judged: {why}")
    worked = not _faults_of_the_file(optimized.findings)
    if not broken and worked:
        return finding(rule, "pass", "", "the graph as it is in the file, without optimization, agrees too")
    if not broken:
        return finding(
            rule,
            "warn",
            "",
            "only the optimized graph fails: the file is right, an optimization of ONNX Runtime changes its outputs",
            hint="Switch optimizations off one by one (disabled_optimizers) to name it, and report it to ONNX Runtime.",
        )
    data = {"rules": sorted({one.rule for one in broken})}
    if not worked and data["rules"] == ["parity.run"]:
        return finding(
            rule, "skip", "", "the unoptimized graph stops in cases too, and agrees in the others", data=data
        )
    if not worked:
        message = f"the unoptimized graph fails too, so the fault lies in the file: {broken[0].message}"
        return finding(rule, "fail", broken[0].subject, message, data=data)
    return finding(
        rule,
        "fail",
        broken[0].subject,
        f"only the unoptimized graph fails: an optimization hides a fault of the file: {broken[0].message}",
        hint="Other runtimes and optimization levels run the file as it is; look for dropout or noise left in it.",
        data=data,
    )


def _faults_of_the_file(findings: Sequence[Finding]) -> list[Finding]:
    """What fails, but for NaN in PyTorch's own output: that is no fault of any graph."""
    return [one for one in findings if one.status == "fail" and one.rule != "parity.reference-nan"]
