"""Stage latency: how long one run takes, warmed up, every sample kept. Unpaired: shown, never gated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from onnx_ci.artifact.layout import Artifact
from onnx_ci.artifact.tensors import Value
from onnx_ci.numerics import latency
from onnx_ci.records.cases import Case
from onnx_ci.records.model import LatencySpec, TargetSpec
from onnx_ci.records.result import Finding, Timing, finding
from onnx_ci.verify.parity import feeds_for, read_inputs
from onnx_ci.verify.session import Session

_ENOUGH = 200
_ENOUGH_SECONDS = 2.0
Transfers = Literal["inside", "outside"]


def pick_case(cases: Sequence[Case]) -> Case | None:
    """The example, or the first case that runs at all."""
    usable = [case for case in cases if not case.refused and not case.is_special]
    return next((case for case in usable if case.origin == "example"), usable[0] if usable else None)


def measure(
    session: Session, artifact: Artifact, case: Case, target: TargetSpec, spec: LatencySpec
) -> tuple[Finding, Timing]:
    """Times single runs of a case on an open session, within the budget.

    Raises:
        ArtifactError: The case can't be read.
        RuntimeFault: It does not run.
    """
    feeds, _ = feeds_for(session, read_inputs(artifact, case))
    session.run(feeds)
    run, transfers = runner(session, feeds, spec.transfers)
    budget = min(spec.budget_seconds, _ENOUGH_SECONDS)
    warmup = 1 + latency.warm_up(run, budget)
    samples = latency.sample(run, budget, most=_ENOUGH)
    taken = timing("onnxruntime", case, samples, target, warmup, transfers)
    threads = "1 thread" if target.threads == 1 else f"{target.threads} threads"
    at = f" ({', '.join(f'{name}={size}' for name, size in case.dims.items())})" if case.dims else ""
    message = (
        f"ONNX Runtime takes {taken.p50_ms:.4g} ms for {case.name}{at}: p50 of {len(samples)} runs after {warmup} to "
        f"warm up, p90 {taken.p90_ms:.4g}, p99 {taken.p99_ms:.4g}; {threads}, copies to the device {transfers}"
    )
    if transfers != spec.transfers:
        message += ", since these inputs can't be left on the device"
    return finding("latency.measured", "pass", case.name, message), taken


def runner(
    session: Session, feeds: Mapping[str, Value], transfers: Transfers
) -> tuple[Callable[[], object], Transfers]:
    """One run as a call, and where its copies are: inside the clock too where inputs can't be left on the device."""
    bound = session.bound_runner(feeds) if transfers == "outside" else None
    return (bound, "outside") if bound is not None else (session.runner(feeds), "inside")


def timing(
    name: str, case: Case, samples_ms: Sequence[float], target: TargetSpec, warmup: int, transfers: Transfers
) -> Timing:
    """The record of one runner's samples on one case."""
    found = latency.percentiles(samples_ms)
    return Timing(
        runner=name,
        case=case.name,
        dims=case.dims,
        provider=target.provider,
        threads=target.threads,
        warmup=warmup,
        samples_ms=[round(sample, 6) for sample in samples_ms],
        p50_ms=found.p50,
        p90_ms=found.p90,
        p99_ms=found.p99,
        transfers=transfers,
    )


def oversubscribed(target: TargetSpec, cores: int) -> list[Finding]:
    """Says that a target has more threads than the container has cores: they wait for each other then."""
    if target.threads <= cores:
        return []
    has = "1 core" if cores == 1 else f"{cores} cores"
    return [
        finding(
            "latency.oversubscribed",
            "warn",
            target.name,
            f"target {target.name} has {target.threads} threads, and this machine or container gives {has}",
            hint=f"Set threads = {cores} for the target, or give its runner as many cores as production has.",
            data={"threads": target.threads, "cores": cores},
        )
    ]


def refused(reasons: Sequence[str]) -> Finding:
    """Says why nothing was timed: a time says nothing about a file that is wrong or ran elsewhere."""
    message = f"not measured, since {' and '.join(reasons)}"
    return finding("latency.measured", "skip", "", message)
