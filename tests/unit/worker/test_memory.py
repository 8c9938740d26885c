"""The peak of memory joins a result that has a timing, from fresh workers; no trouble of theirs is the result's."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.results import result, timing
from tests.unit.verify.artifacts import CPU, linear_job, write_artifact
from tests.unit.verify.widening import widening, widening_case

from onnx_ci.records.messages import Event, Request, VerifyRequest
from onnx_ci.records.result import Result, finding
from onnx_ci.worker.launch import Workers
from onnx_ci.worker.memory import with_memory

MIB = 1 << 20
LARGE, SMALL = 1 << 22, 1 << 4
TIMED = result("m", "cpu", [finding("latency.measured", "pass", "", "")], latency=[timing("onnxruntime", 1.0)])
COMPARED = replace(TIMED, latency=[timing(one, 1.0) for one in ("onnxruntime", "head", "base")])


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


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    folder = tmp_path_factory.mktemp("workers")
    with Workers(Path(sys.executable), folder=folder, environment=dict(os.environ), preload=["verify"]) as started:
        yield started


def measured(before: Result, workers: Any, asked: VerifyRequest, log: Path | str = "log", spent: float = 0.0) -> Result:
    request = Request(id=1, verb="verify", log=str(log), time_limit=60)
    ticks = itertools.count()
    return with_memory(before, asked, request, spent, workers, lambda stage: None, lambda: float(next(ticks)))


def test_a_large_value_between_is_in_the_peak_and_the_bases_stands_beside(workers: Workers, tmp_path: Path) -> None:
    head, base = (
        write_artifact(tmp_path / name, model=widening(width), cases=[widening_case(1), widening_case(4)])
        for name, width in (("head", LARGE), ("base", SMALL))
    )
    asked = VerifyRequest(artifact=str(head.folder), target=CPU, job=linear_job(), base=str(base.folder))
    found = measured(COMPARED, workers, asked, tmp_path / "log")
    large, small = found.memory
    assert (large.runner, small.runner) == ("onnxruntime", "base")
    assert (large.case, large.dims) == (small.case, small.dims) == ("b4", {"batch": 4})
    assert large.host_bytes is not None, large.host_note
    assert large.host_bytes >= 4 * 4 * LARGE
    assert small.host_bytes is None or small.host_bytes < 4 * 4 * LARGE
    assert found.stages["memory"].seconds > 0
    assert (found.findings, found.status) == (COMPARED.findings, COMPARED.status)


@pytest.mark.parametrize(
    "event",
    [
        Event(id=7, kind="died", message="it was ended by SIGKILL"),
        Event(id=7, kind="raised", message="it was ended by SIGKILL"),
        Event(id=7, kind="result", payload={"case": "it was ended by SIGKILL"}),
    ],
)
def test_what_goes_wrong_is_a_reason_and_no_finding(event: Event) -> None:
    workers = Answering(event)
    asked = VerifyRequest(artifact="/nowhere", target=CPU, job=linear_job())
    found = measured(TIMED, workers, asked, spent=20.0)
    (peak,) = found.memory
    assert peak.host_bytes is None
    assert peak.host_note.startswith("not measured: ")
    assert (found.findings, found.status) == (TIMED.findings, TIMED.status)
    (sent,) = workers.asked
    assert (sent.verb, sent.time_limit) == ("memory", 39.0)


def test_nothing_is_asked_without_a_timing_or_without_time() -> None:
    workers = Answering(Event(id=7, kind="died"))
    asked = VerifyRequest(artifact="/nowhere", target=CPU, job=linear_job())
    refused = replace(TIMED, latency=[])
    assert measured(refused, workers, asked) == refused
    (peak,) = measured(TIMED, workers, asked, spent=60.0).memory
    assert "time_limit" in peak.host_note
    assert workers.asked == []
