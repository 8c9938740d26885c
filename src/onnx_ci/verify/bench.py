"""Stage latency: how long one run takes, warmed up, every sample kept. Unpaired: shown, never gated."""

from __future__ import annotations

from collections.abc import Sequence

from onnx_ci.artifact.layout import Artifact
from onnx_ci.numerics import latency
from onnx_ci.records.cases import Case
from onnx_ci.records.model import TargetSpec
from onnx_ci.records.result import Finding, Timing, finding
from onnx_ci.verify.parity import feeds_for, read_inputs
from onnx_ci.verify.session import Session

_ENOUGH = 200
_ENOUGH_SECONDS = 2.0


def pick_case(cases: Sequence[Case]) -> Case | None:
    """The example, or the first case that runs at all."""
    usable = [case for case in cases if not case.refused]
    return next((case for case in usable if case.origin == "example"), usable[0] if usable else None)


def measure(
    session: Session, artifact: Artifact, case: Case, target: TargetSpec, budget_seconds: float
) -> tuple[Finding, Timing]:
    """Times single runs of a case on an open session, within a budget in seconds.

    Raises:
        ArtifactError: The case can't be read.
        RuntimeFault: It does not run.
    """
    feeds, _ = feeds_for(session, read_inputs(artifact, case))
    session.run(feeds)
    run = session.runner(feeds)
    budget = min(budget_seconds, _ENOUGH_SECONDS)
    warmup = 1 + latency.warm_up(run, budget)
    samples = latency.sample(run, budget, most=_ENOUGH)
    found = latency.percentiles(samples)
    timing = Timing(
        runner="onnxruntime",
        case=case.name,
        dims=case.dims,
        provider=target.provider,
        threads=target.threads,
        warmup=warmup,
        samples_ms=[round(sample, 6) for sample in samples],
        p50_ms=found.p50,
        p90_ms=found.p90,
        p99_ms=found.p99,
        transfers="inside",
    )
    threads = "1 thread" if target.threads == 1 else f"{target.threads} threads"
    at = f" ({', '.join(f'{name}={size}' for name, size in case.dims.items())})" if case.dims else ""
    message = (
        f"ONNX Runtime takes {found.p50:.4g} ms for {case.name}{at}: p50 of {len(samples)} runs after {warmup} to "
        f"warm up, p90 {found.p90:.4g}, p99 {found.p99:.4g}; {threads}, copies to the device inside"
    )
    return finding("latency.measured", "pass", case.name, message), timing


def refused(reasons: Sequence[str]) -> Finding:
    """Says why nothing was timed: a time says nothing about a file that is wrong or ran elsewhere."""
    message = f"not measured, since {' and '.join(reasons)}"
    return finding("latency.measured", "skip", "", message)
