"""PyTorch, eager and compiled if asked, and the file on the CPU provider, timed in turn: shown, never a gate."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from onnx_ci.export import compiled
from onnx_ci.export.compiled import Backend, Compiled
from onnx_ci.export.probe import File, feeds
from onnx_ci.export.state import preserved
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import RunCase
from onnx_ci.numerics import latency
from onnx_ci.numerics.latency import Interleaved
from onnx_ci.numerics.words import counted
from onnx_ci.records.model import CPU, LatencySpec
from onnx_ci.records.result import COMPILED, Finding, Timing, finding

_RULE = "latency.measured"
_SHARE = 0.2  # of the latency budget: the targets' own legs have the rest
_LEAST_SECONDS = 0.2


def compare(
    subject: Subject,
    graph: Graph,
    example: RunCase,
    folder: Path,
    spec: LatencySpec,
    compile_seconds: float,
    *,
    backend: Backend = compiled.DEFAULT,
) -> tuple[list[Timing], list[Finding]]:
    """Times them on the example, on one thread each; nothing where the runtime does not take the file (a finding of
    `verify` says so).

    Args:
        subject: The module and its call on the example.
        graph: What became of it.
        example: The case.
        folder: Where the file lies.
        spec: The time there is, and whether torch.compile is asked for.
        compile_seconds: After this time compiling is given up; it counts to no runner.
        backend: Of torch.compile.
    """
    given = feeds(subject, graph, example)
    call = subject.call

    def eager() -> object:
        return subject.module(*call.args, **call.kwargs)

    try:
        file = File(folder)
        file.run(given)
    except Exception:  # ONNX Runtime's errors have no common base
        return [], [_untimed("ONNX Runtime does not take the file")] if spec.torch_compile else []
    runners: dict[str, Callable[[], object]] = {"onnxruntime": lambda: file.run(given)}
    made = None
    with _one_thread(), torch.no_grad(), preserved(subject.module):
        if spec.torch_compile:
            made = compiled.compiled(subject.module, call, compile_seconds, backend=backend)
            if made.run is not None:
                runners[COMPILED] = made.run
        if _runs(eager):
            runners["eager"] = eager
        taken = latency.interleave(runners, max(_LEAST_SECONDS, _SHARE * spec.budget_seconds))
    timings = [_timing(runner, example, samples, taken.warmup) for runner, samples in taken.samples_ms.items()]
    return timings, [_told(made, taken, example)] if made is not None else []


def _timing(runner: str, example: RunCase, samples: list[float], warmup: int) -> Timing:
    shares = latency.percentiles(samples)
    return Timing(
        runner=runner,
        case=example.name,
        dims=dict(example.dims),
        provider=CPU,
        threads=1,
        warmup=warmup,
        samples_ms=samples,
        p50_ms=shares.p50,
        p90_ms=shares.p90,
        p99_ms=shares.p99,
    )


def _told(made: Compiled, taken: Interleaved, example: RunCase) -> Finding:
    if made.run is None:
        return _untimed(made.why_not)
    theirs, ours = taken.samples_ms[COMPILED], taken.samples_ms["onnxruntime"]
    ratio = latency.pair_ratio(theirs, ours)
    parts = "" if made.graphs is None else f" into {counted(made.graphs, 'graph')}"
    message = (
        f"torch.compile takes {latency.percentiles(theirs).p50:.4g} ms for {example.name}, {ratio.median:.3g} times "
        f"ONNX Runtime's time (95 % interval {ratio.low:.3g} to {ratio.high:.3g}, {ratio.pairs} pairs, 1 thread); "
        f"compiled{parts} in {made.seconds:.0f} s before the clock"
    )
    return finding(_RULE, "pass", COMPILED, message)


def _untimed(why: str) -> Finding:
    return finding(_RULE, "skip", COMPILED, f"torch.compile was not timed, since {why}")


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
