"""The calibrate job: how much benign runs of one artifact err on one target, in the very terms of the budget.

Benign is what may change without anybody's fault: optimization levels, one and all threads, a second run. What is wrong
is refused, or a fault could be calibrated into being right.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from onnx_ci.artifact import machine
from onnx_ci.artifact.layout import Artifact
from onnx_ci.errors import OnnxCiError
from onnx_ci.numerics import budget, parity
from onnx_ci.numerics.comparison import CaseComparison
from onnx_ci.numerics.dtypes import float_dtype_named
from onnx_ci.numerics.values import by_output
from onnx_ci.records import strict
from onnx_ci.records.calibration import HIGHEST, Calibration
from onnx_ci.records.cases import Case
from onnx_ci.records.contract import Contract
from onnx_ci.records.environment import Environment
from onnx_ci.records.messages import Calibrated, CalibrateRequest
from onnx_ci.records.model import ParitySpec, TargetSpec
from onnx_ci.records.result import Finding, output_of
from onnx_ci.verify import calibrated, function, placement, structure
from onnx_ci.verify.opener import Opener
from onnx_ci.verify.parity import CaseRuns, run_cases
from onnx_ci.verify.session import (
    LEVELS,
    Level,
    RuntimeFault,
    available_providers,
    known_providers,
)

_HINT = "See what `onnx-ci verify` says of it."


@dataclass(frozen=True, slots=True)
class _Run:
    """One benign way to run the file."""

    level: Level
    threads: int

    @property
    def name(self) -> str:
        return f"optimization {self.level}, {self.threads} thread{'' if self.threads == 1 else 's'}"


@dataclass(slots=True)
class _Seen:
    """What the runs showed, output by output; what was refused once stays so."""

    runs: list[str] = field(default_factory=list)
    observed: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def calibrate(request: CalibrateRequest, progress: Callable[[str], None]) -> Calibrated:
    """Runs the cases of an artifact in every benign way, and takes the largest ratio of each output.

    Raises:
        OnnxCiError: The artifact is not sound, the file does not open, or a case can't be told.
    """
    artifact, target = Artifact(Path(request.artifact)), strict.strict(request.target)
    os.environ.update(strict.environment(target))
    environment = machine.describe()
    progress("structure")
    _sound(artifact, request)
    missing = placement.missing(target, available_providers(), known_providers(), environment.packages)
    if missing:
        return Calibrated(absent=missing.message)
    contract, listed = artifact.contract(), artifact.cases()
    cases = [case for case in listed.cases if not case.is_special]  # rounding is measured on usual values
    spec = _strict(request.job.model.parity)
    progress("twin")
    outputs = [item.name for item in contract.outputs]
    seen = _Seen(refused=_other_functions(function.judge(artifact, listed).findings, outputs))
    for run in _runs(environment.cores):
        progress(run.name)
        opener = Opener(artifact, replace(target, threads=run.threads), request.job.model.custom_ops)
        try:
            session = opener.open(optimized=run.level)
        except RuntimeFault as fault:
            if run.level == LEVELS[-1]:
                raise OnnxCiError(
                    f"the file does not open on {target.provider}: {fault.message}", hint=_HINT
                ) from fault
            continue  # a level that the provider does not take shows nothing; the usual one must open
        active = placement.active(target, session.active, session.provider_options(), os.environ)
        if active.status != "pass":
            return Calibrated(absent=active.message)
        ran = run_cases(session, artifact, cases, spec, inner=opener.inner(optimized=run.level))
        session.close()
        _take(seen, run, ran, spec, outputs)
    manual = request.job.model.parity.outputs
    observed = {name: value for name, value in seen.observed.items() if name not in seen.refused and name not in manual}
    return Calibrated(
        refused={name: why for name, why in seen.refused.items() if name not in manual},
        calibration=_record(artifact, contract, cases, target, environment, seen.runs, observed),
    )


def _strict(spec: ParitySpec) -> ParitySpec:
    """The highest budget that there is, and nothing by hand: what fails under this is wrong."""
    return replace(spec, budget=HIGHEST, outputs={}, calibrations={}, calibration=None)


def _other_functions(findings: Sequence[Finding], outputs: Collection[str]) -> dict[str, str]:
    """Outputs that the file computes by another function than the module: no budget makes up for that."""
    return {output_of(one.subject, outputs): one.message for one in findings if one.status in ("fail", "error")}


def _sound(artifact: Artifact, request: CalibrateRequest) -> None:
    found = structure.check_files(artifact, request.job.model.custom_ops)
    if found.model is None:
        why = found.findings[-1].message  # the one that ended it
        raise OnnxCiError(f"the artifact is not sound: {why}", hint="Export the model again.")


def _runs(cores: int) -> Iterator[_Run]:
    """Every level on one thread, and the two ends on all; the usual way comes last."""
    for level in LEVELS:
        yield _Run(level, 1)
    if cores > 1:
        yield _Run(LEVELS[0], cores)
        yield _Run(LEVELS[-1], cores)


def _take(seen: _Seen, run: _Run, ran: CaseRuns, spec: ParitySpec, outputs: Collection[str]) -> None:
    if ran.not_told:
        name, why = ran.not_told[0]
        raise OnnxCiError(f"nothing is known of case {name}: {why}", hint=_HINT)
    if not ran.comparisons:
        raise OnnxCiError("there is no case to run", hint=_HINT)
    seen.runs.append(run.name)
    findings, _ = parity.judge(ran.comparisons, spec)
    for found in findings:
        if found.status in ("fail", "error") and found.rule != "parity.reference-nan":
            seen.refused.setdefault(output_of(found.subject, outputs), f"{found.message} ({run.name})")
    for output, ratio in _ratios(ran.comparisons).items():
        # Beyond the highest it failed above, or is known from too few elements to be called a fault.
        seen.observed[output] = max(seen.observed.get(output, 0.0), min(ratio, HIGHEST))


def _ratios(comparisons: Sequence[CaseComparison]) -> dict[str, float]:
    """The largest ratio of each output that has an oracle; items of a sequence count for the whole."""
    largest: dict[str, float] = {}
    for seen in by_output([one for one in comparisons if not one.stopped]).values():
        item = seen[0][1]
        kind = float_dtype_named(item.dtype)
        measured = [one.floats for _, one in seen if one.floats is not None and one.floats.e_torch is not None]
        if kind is not None and measured:
            largest[item.base] = max(largest.get(item.base, 0.0), *budget.needed(measured, kind))
    return largest


def _record(
    artifact: Artifact,
    contract: Contract,
    cases: Sequence[Case],
    target: TargetSpec,
    environment: Environment,
    runs: list[str],
    observed: dict[str, float],
) -> Calibration:
    files = artifact.manifest()
    inputs = {
        case.name: [files[name].sha256 for name in sorted(files) if name.startswith(f"test_data_set_{case.index}/in")]
        for case in cases
        if not case.refused
    }
    return Calibration(
        date=machine.today(),
        provider=target.provider,
        options=target.options,
        runs=runs,
        cases={name: hashlib.sha256("".join(parts).encode()).hexdigest()[:16] for name, parts in inputs.items()},
        versions=calibrated.versions(contract, environment),
        machine={"cpu": environment.cpu, "cores": str(environment.cores), "platform": environment.platform},
        artifact=artifact.digest(),
        contract=calibrated.contract_digest(contract),
        observed={name: math.ceil(100 * value) / 100 for name, value in sorted(observed.items())},
    )
