"""The peak of memory as the tool sees it: measured where latency was, each file in a worker of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pydantic import TypeAdapter

from onnx_ci.records import codec
from onnx_ci.records.messages import MemoryRequest, Request, VerifyRequest
from onnx_ci.records.result import Memory, Result, StageCost
from onnx_ci.worker import answers
from onnx_ci.worker.launch import Workers

STAGE = "memory"
_MEMORY = TypeAdapter(Memory)


def with_memory(
    result: Result,
    asked: VerifyRequest,
    request: Request,
    spent: float,
    workers: Workers,
    progress: Callable[[str], None],
    clock: Callable[[], float],
) -> Result:
    """Measures the file, and the base's where both were timed. No trouble on the way is one of the result's.

    Args:
        result: Of the judging; without a timing in it nothing is measured, for the reason that it tells.
        asked: What it was asked for.
        request: The same as a message: log and limits are taken from it.
        spent: Seconds that it took.
        workers: Where to run it.
        progress: Told that it begins.
        clock: Seconds.
    """
    timed = {one.runner for one in result.latency}
    if "onnxruntime" not in timed:
        return result
    progress(STAGE)
    start, found = clock(), list[Memory]()
    for base in [False, *([True] if "base" in timed else [])]:
        left = request.time_limit - spent - (clock() - start)
        found.append(_measured(asked, request, left, workers, base=base))
    cost = StageCost(seconds=round(clock() - start, 4))
    return replace(result, memory=found, stages={**result.stages, STAGE: cost})


def _measured(asked: VerifyRequest, request: Request, left: float, workers: Workers, *, base: bool) -> Memory:
    about = Memory(
        runner="base" if base else "onnxruntime",
        case="",
        dims={},
        provider=asked.target.provider,
        threads=asked.target.threads,
    )
    if left <= 0:
        return replace(about, host_note="not measured: nothing of time_limit was left")
    payload = codec.encode(MemoryRequest(verify=asked, base=base))
    message = replace(request, id=workers.next_id(), verb="memory", time_limit=left, payload=payload)
    told = answers.read(_MEMORY, workers.perform(message, lambda _: None))
    return told if isinstance(told, Memory) else replace(about, host_note=f"not measured: {told}")
