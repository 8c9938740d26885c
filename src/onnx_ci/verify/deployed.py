"""The same file with the options that production uses, where those loosen the arithmetic: a row, a rule and a budget.

In a process of its own: NVIDIA_TF32_OVERRIDE and denormals as zero hold for a whole process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import onnx

from onnx_ci.artifact import machine
from onnx_ci.artifact.layout import Artifact
from onnx_ci.records import strict
from onnx_ci.records.messages import Deployed, DeployedRequest
from onnx_ci.records.model import ParitySpec, TargetSpec
from onnx_ci.records.result import Finding, Status, finding, output_of
from onnx_ci.verify import calibrated, parity, placement, places
from onnx_ci.verify.leg import Leg, judge_latency, judge_provider
from onnx_ci.verify.session import RuntimeFault
from onnx_ci.verify.stages import Stages

RULE = "parity.deployed"
_STAGE = "deployed"
_VALUES = ("parity.runtime", "parity.exact", "parity.tolerance")
_TOLD_BEFORE = ("parity.reference-nan", "parity.unoracled", "parity.ill-conditioned", "parity.unused-input")
"""What is as true of the strict row."""
_OF_THE_MACHINE = ("memory", "device", "library")


def deployed(request: DeployedRequest, progress: Callable[[str], None]) -> Deployed:
    """Judges parity, provider and latency with the target's own options.

    Raises:
        ArtifactError: The artifact can't be read.
    """
    asked = request.verify
    loosened = strict.loosened(asked.target)
    artifact = Artifact(Path(asked.artifact))
    spec = spec_of(asked.job.model.parity, asked.target)
    leg = Leg(asked, artifact, Stages(progress), asked.target, spec, failed=request.broken)
    leg.model = onnx.load(str(artifact.model), load_external_data=False)
    leg.contract, leg.cases, leg.source_map = artifact.contract(), artifact.cases(), artifact.source_map()
    with leg.stages.run(_STAGE, shown="deployed options"):
        _open(leg, loosened)
        _parity(leg, loosened)
    judge_provider(leg)
    judge_latency(leg, machine.usable_cores())
    if leg.session is not None:
        leg.session.close()
    outputs = [item.name for item in leg.model.graph.output]
    findings = places.placed(leg.findings, outputs, leg.source_map, asked.job.model)
    return Deployed(findings=findings, figures=leg.figures, timings=leg.timings, stages=leg.stages.costs)


def spec_of(spec: ParitySpec, target: TargetSpec) -> ParitySpec:
    """How outputs are judged with a target's own options: by its budget, or by that of the rounding they let in."""
    if target.budget is not None:
        return replace(spec, budget=target.budget, calibrations={})
    return replace(spec, rounding=strict.narrowest(strict.loosened(target)))


def _open(leg: Leg, loosened: Mapping[str, str]) -> None:
    try:
        leg.session = leg.opener.open()
    except RuntimeFault as fault:
        told = f"with {', '.join(loosened)} ONNX Runtime does not open the file, which it opens without: "
        status: Status = "error" if fault.kind in _OF_THE_MACHINE else "fail"
        leg.findings.append(finding(RULE, status, "", told + fault.message, data={"options": dict(loosened)}))
        leg.blocked = "ONNX Runtime does not open the file with the target's options"
        return
    active = placement.active(leg.target, leg.session.active, leg.session.provider_options(), os.environ)
    leg.findings.append(active)
    if active.status != "pass":
        leg.session.close()
        leg.session, leg.blocked = None, f"{leg.target.provider} is not active"


def _parity(leg: Leg, loosened: Mapping[str, str]) -> None:
    if leg.session is None or leg.cases is None:
        return
    spec, cases = leg.spec, leg.cases.cases
    if spec.calibrations and not spec.rounding:
        spec, _ = calibrated.apply(spec, strict.strict(leg.target), leg.contract, machine.describe())
    runs = parity.run_cases(leg.session, leg.artifact, cases, spec, inner=leg.opener.inner())
    verdict = parity.judge(runs, cases, spec, machine.today())
    missed = {output_of(one.subject, spec.outputs) for one in verdict.findings if _misses_by_hand(one)}
    if spec.rounding and missed:
        # A tolerance by hand is meant for strict arithmetic: what this rounding is known to cost is allowed beside it.
        kept = {name: one for name, one in spec.outputs.items() if name not in missed}
        verdict = parity.judge(runs, cases, replace(spec, outputs=kept), machine.today())
    leg.findings += told(verdict.findings, loosened, leg.target)
    leg.figures = [replace(one, options=", ".join(loosened)) for one in verdict.figures]


def _misses_by_hand(found: Finding) -> bool:
    return found.rule == "parity.tolerance" and found.status == "fail"


def told(findings: Sequence[Finding], loosened: Mapping[str, str], target: TargetSpec) -> list[Finding]:
    """What the judges of parity found, as findings of the deployment's options."""
    said = f"with {', '.join(loosened)}"
    kept = [one for one in findings if one.rule in _VALUES or one.status in ("warn", "fail", "error")]
    kept = [one for one in kept if one.rule not in _TOLD_BEFORE and one.status != "skip"]
    if not kept:
        return [finding(RULE, "error", "", f"{said} no output was compared", data={"options": dict(loosened)})]
    hint = (
        f"Switch it off in production, or accept the error by a budget in [targets.{target.name}]; with strict options "
        "the other rules of parity say whether the file is right."
    )
    return [
        replace(
            one,
            rule=RULE,
            message=f"{said}: {one.message}",
            hint="" if one.status == "pass" else hint,
            data={**one.data, "options": dict(loosened), "rule": one.rule},
        )
        for one in kept
    ]
