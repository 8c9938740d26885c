"""What the stages of one leg share, and those that are told of the deployment's own options: provider and latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from onnx_ci.artifact import graph
from onnx_ci.artifact.layout import Artifact
from onnx_ci.errors import OnnxCiError
from onnx_ci.numerics.comparison import CaseComparison
from onnx_ci.records.cases import CaseList
from onnx_ci.records.contract import Contract
from onnx_ci.records.messages import VerifyRequest
from onnx_ci.records.model import ParitySpec, TargetSpec
from onnx_ci.records.result import Finding, OutputFigures, Timing, finding, label
from onnx_ci.records.source_map import SourceMap
from onnx_ci.verify import bench, regression, witness
from onnx_ci.verify.opener import Opener
from onnx_ci.verify.session import RuntimeFault, Session
from onnx_ci.verify.stages import Stages


@dataclass(slots=True)
class Leg:
    """What the stages know and find.

    Attributes:
        target: With the strict options, or with the deployment's.
        spec: With the calibration that counts.
        blocked: Why nothing may run.
        failed: Stages that did not pass before this leg.
    """

    request: VerifyRequest
    artifact: Artifact
    stages: Stages
    target: TargetSpec
    spec: ParitySpec
    findings: list[Finding] = field(default_factory=list)
    figures: list[OutputFigures] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    model: onnx.ModelProto | None = None
    contract: Contract | None = None
    cases: CaseList | None = None
    source_map: SourceMap = field(default_factory=lambda: SourceMap(schema_version=1))
    session: Session | None = None
    compared: list[CaseComparison] = field(default_factory=list)
    blocked: str = ""
    failed: Sequence[str] = ()

    @property
    def opener(self) -> Opener:
        """Of the file on this target."""
        return Opener(self.artifact, self.target, self.request.job.model.custom_ops)

    @property
    def name(self) -> str:
        """Of the model, with its variant."""
        return label(self.request.job.model.name, self.request.job.model.variant)

    def skip(self, rule: str, reason: str) -> None:
        """Says that a rule was not judged."""
        self.findings.append(finding(rule, "skip", "", f"not judged, since {reason}"))

    def broken(self, stage: str) -> bool:
        """Whether a stage did not pass."""
        found = any(one.stage == stage and one.status in ("fail", "error") for one in self.findings)
        return found or stage in self.failed


def judge_provider(leg: Leg) -> None:
    """Where each node runs."""
    with leg.stages.run("provider"):
        if leg.session is None or leg.model is None:
            if not leg.broken("provider"):
                leg.skip("provider.active", leg.blocked)
            return
        listed = leg.cases.cases if leg.cases else []
        origins = graph.origins_by_node(leg.source_map)
        leg.findings += witness.judge(leg.session.placement(), leg.opener, leg.model, listed, origins)


def judge_latency(leg: Leg, cores: int) -> None:
    """How long a run takes, alone and beside the base's; refused unless parity and provider passed."""
    with leg.stages.run("latency"):
        leg.findings += bench.oversubscribed(leg.target, cores)
        case = bench.pick_case(leg.cases.cases) if leg.cases else None
        if leg.session is None or case is None:
            leg.findings.append(bench.refused([leg.blocked or "there is no case to run"]))
            return
        reasons = [f"{stage} did not pass" for stage in ("parity", "provider") if leg.broken(stage)]
        if reasons:
            leg.findings.append(bench.refused(reasons))
            return
        try:
            found, timing = bench.measure(leg.session, leg.artifact, case, leg.target, leg.request.job.latency)
        except (RuntimeFault, OnnxCiError) as error:
            leg.findings.append(bench.refused([f"{case.name} does not run: {error}"]))
            return
        leg.findings.append(found)
        leg.timings.append(timing)
        _against_base(leg)


def _against_base(leg: Leg) -> None:
    if leg.request.base is None or leg.cases is None or leg.contract is None:
        return
    found, timings = regression.judge(
        leg.artifact,
        leg.contract,
        Artifact(Path(leg.request.base)),
        leg.cases.cases,
        leg.target,
        leg.request.job.latency,
        graph.origins_by_node(leg.source_map),
        lambda model, profile: leg.opener.open(model=model, profile=profile),
    )
    leg.findings += found
    leg.timings += timings
