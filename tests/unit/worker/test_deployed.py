"""The deployment's own options beside the strict ones: asked for where they loosen, and never silently absent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from onnx_ci.artifact.machine import describe
from onnx_ci.records import codec
from onnx_ci.records.messages import Deployed, Event, Request, VerifyRequest
from onnx_ci.records.model import JobSpec, ModelSpec, TargetSpec
from onnx_ci.records.result import Finding, Result, finding
from onnx_ci.worker.deployed import with_deployed

LOOSE = TargetSpec(name="t", provider="CUDAExecutionProvider")
STRICT = replace(LOOSE, options={"use_tf32": 0})
FOUND = Deployed(findings=[finding("parity.deployed", "fail", "y", "off")], figures=[], timings=[], stages={})


class Answering:
    """Workers that give one answer, and keep what they were asked."""

    def __init__(self, event: Event) -> None:
        self.event = event
        self.asked: list[Request] = []

    def next_id(self) -> int:
        return 7

    def perform(self, request: Request, progress: Any) -> Event:
        self.asked.append(request)
        return self.event


def result(*findings: Finding, provider: str | None = LOOSE.provider) -> Result:
    return Result(
        schema_version=1, model="m", variant=None, target="t", required=True, status="pass", artifact="0" * 64,
        environment=describe(), provider=provider, findings=[*findings],
    )  # fmt: skip


def joined(before: Result, workers: Answering, target: TargetSpec = LOOSE) -> Result:
    model = ModelSpec(name="m", entrypoint="m.py")
    asked = VerifyRequest(artifact="/nowhere", target=target, job=JobSpec(model=model, targets=[target]))
    request = Request(id=1, verb="verify", log="log", time_limit=60)
    return with_deployed(before, asked, request, 20.0, workers, lambda stage: None)  # type: ignore[arg-type]


def test_what_is_found_joins_the_result_and_its_status() -> None:
    workers = Answering(Event(id=7, kind="result", payload=codec.encode(FOUND)))
    before = result(finding("parity.runtime", "pass", "y", "good"), finding("golden.drift", "skip", "", "none"))
    found = joined(before, workers)
    assert [one.rule for one in found.findings] == ["parity.runtime", "parity.deployed", "golden.drift"]
    assert found.status == "fail"
    (asked,) = workers.asked
    assert (asked.verb, asked.time_limit) == ("deployed", 40.0)
    assert asked.payload["broken"] == []


def test_what_failed_before_is_handed_on() -> None:
    workers = Answering(Event(id=7, kind="result", payload=codec.encode(FOUND)))
    joined(result(finding("parity.runtime", "fail", "y", "bad")), workers)
    assert workers.asked[0].payload["broken"] == ["parity"]


@pytest.mark.parametrize(
    "event",
    [
        Event(id=7, kind="died", message="signal 11"),
        Event(id=7, kind="raised", message="signal 11", where="m"),
        Event(id=7, kind="result", payload={"findings": "signal 11"}),
    ],
)
def test_no_answer_is_no_pass(event: Event) -> None:
    found = joined(result(finding("parity.runtime", "pass", "y", "good")), Answering(event))
    assert found.status == "error"
    assert {one.rule: one.status for one in found.findings} == {
        "parity.runtime": "pass",
        "parity.deployed": "error",
        "provider.active": "skip",
        "latency.measured": "skip",
    }


@pytest.mark.parametrize(("before", "target"), [(result(), STRICT), (result(provider=None), LOOSE)])
def test_nothing_is_asked_where_nothing_loosens_or_runs(before: Result, target: TargetSpec) -> None:
    workers = Answering(Event(id=7, kind="died"))
    assert joined(before, workers, target) == before
    assert workers.asked == []
