"""The deployment's own options as the tool sees them: when they are judged, and how what was found joins the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pydantic import TypeAdapter

from onnx_ci.records import codec, strict
from onnx_ci.records.messages import Deployed, DeployedRequest, Event, Request, VerifyRequest
from onnx_ci.records.result import STAGES, Result, finding, worst
from onnx_ci.worker import answers
from onnx_ci.worker.launch import Workers

_DEPLOYED = TypeAdapter(Deployed)
_NEEDED = ("parity", "provider")


def with_deployed(
    result: Result,
    asked: VerifyRequest,
    request: Request,
    spent: float,
    workers: Workers,
    progress: Callable[[str], None],
) -> Result:
    """Judges the target's own options in a worker of their own, where they loosen the arithmetic.

    Args:
        result: With the strict options.
        asked: What it was asked for.
        request: The same as a message: log and limits are taken from it.
        spent: Seconds that it took.
        workers: Where to run it.
        progress: Told of each stage as it begins.
    """
    loosened = strict.loosened(asked.target)
    if not loosened or result.provider is None:
        return result  # nothing to judge, or nothing runs at all, which has been said
    broken = [name for name in _NEEDED if any(_broke(one.stage, one.status, name) for one in result.findings)]
    payload = codec.encode(DeployedRequest(verify=asked, broken=broken))
    left = max(1.0, request.time_limit - spent)
    message = replace(request, id=workers.next_id(), verb="deployed", time_limit=left, payload=payload)
    found = _told(workers.perform(message, progress), ", ".join(loosened))
    findings = sorted([*result.findings, *found.findings], key=lambda one: STAGES.index(one.stage))
    return replace(
        result,
        findings=findings,
        status=worst([one.status for one in findings]),
        parity=[*result.parity, *found.figures],
        latency=[*result.latency, *found.timings],
        stages={**result.stages, **found.stages},
    )


def _broke(stage: str, status: str, name: str) -> bool:
    return stage == name and status in ("fail", "error")


def _told(event: Event, options: str) -> Deployed:
    answer = answers.read(_DEPLOYED, event)
    if not isinstance(answer, str):
        return answer
    message = f"nothing is known of the file with {options}: {answer}"
    unknown = finding("parity.deployed", "error", "", message, hint="The log has what it printed.")
    skipped = [
        finding(rule, "skip", "", "not judged, since the file was not run with the target's options")
        for rule in ("provider.active", "latency.measured")
    ]
    return Deployed(findings=[unknown, *skipped], figures=[], timings=[], stages={})
