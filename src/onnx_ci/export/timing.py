"""Eager PyTorch and the file on the CPU provider, timed in interleaved pairs: shown, never a gate."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from onnx_ci.export.probe import File, feeds
from onnx_ci.export.state import preserved
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import RunCase
from onnx_ci.numerics import latency
from onnx_ci.records.model import CPU
from onnx_ci.records.result import Timing

_SHARE = 0.2  # of the latency budget: the targets' own legs have the rest
_LEAST_SECONDS = 0.2


def compare(subject: Subject, graph: Graph, example: RunCase, folder: Path, budget_seconds: float) -> list[Timing]:
    """Times both on the example, on one thread each; empty where the runtime does not take the file (a finding of
    `verify` says so).
    """
    given = feeds(subject, graph, example)
    call = subject.call

    def eager() -> object:
        return subject.module(*call.args, **call.kwargs)

    try:
        file = File(folder)
        file.run(given)
    except Exception:  # ONNX Runtime's errors have no common base
        return []
    runners: dict[str, Callable[[], object]] = {"onnxruntime": lambda: file.run(given)}
    with _one_thread(), torch.no_grad(), preserved(subject.module):
        if _runs(eager):
            runners["eager"] = eager
        taken = latency.interleave(runners, max(_LEAST_SECONDS, _SHARE * budget_seconds))
    made = []
    for runner, samples in taken.samples_ms.items():
        shares = latency.percentiles(samples)
        made.append(
            Timing(
                runner=runner,
                case=example.name,
                dims=dict(example.dims),
                provider=CPU,
                threads=1,
                warmup=taken.warmup,
                samples_ms=samples,
                p50_ms=shares.p50,
                p90_ms=shares.p90,
                p99_ms=shares.p99,
            )
        )
    return made


def _runs(eager: Callable[[], object]) -> bool:
    """Whether the module still runs: a control-flow operator compiles on each call, and may not after an export."""
    try:
        eager()
    except Exception:
        traceback.print_exc()
        return False
    return True


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
