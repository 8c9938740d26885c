"""What the shape work adds to an export, stage by stage, for a small model and one of 100 million parameters.

    python benchmarks/contract.py [--only small|large] [--rounds 1]

The export is what a bare script does: the entrypoint loaded, the module captured, translated and saved. Shape work is
all that is done because sizes vary: digests by which two exports are compared, cases at the ends of the dims (made, run
in PyTorch, written), the scan on the meta device, batches in parts, the probe of assumed sizes, and the second export,
whole. The oracle's float64 runs of those cases are parity's, which judges numbers by them; they stand apart, and a
second ratio counts them in. The rest (checks of mode and state, the example's own case, latency) is in neither.
Each export has a fresh process, forked from one that has imported torch, as in the product. Seconds are of the process
(CPU), since other work on a machine lengthens walls; walls stand beside them.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import platform
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import onnxscript
import torch

from onnx_ci.export import canonical, capture, evaluate, gather, job, outside, probe, program, save, second, state
from onnx_ci.records.messages import ExportRequest, ReexportRequest
from onnx_ci.records.model import DimSpec, InputSpec, JobSpec, LatencySpec, ModelSpec
from onnx_ci.worker import serve

ROOT = Path(__file__).resolve().parent
MODELS = {
    "small": {"words": 1000, "width": 64, "depth": 2, "heads": 4},
    "large": {"words": 21000, "width": 768, "depth": 12, "heads": 12},
}
EXPORT = ("load", "capture", "translate", "save")
SHAPE = ("digests", "scan", "batches tried", "boundary cases", "probe", "second export")
ORACLE = "their oracle"
Seconds = dict[str, tuple[float, float]]
"""CPU and wall seconds of each stage."""


class Laps:
    """Charges time to the innermost stage that is open; there is always one."""

    def __init__(self) -> None:
        self.cpu: Counter[str] = Counter()
        self.wall: Counter[str] = Counter()
        self._open = ["rest"]
        self._last = (time.process_time(), time.perf_counter())

    def _charge(self) -> None:
        now = (time.process_time(), time.perf_counter())
        self.cpu[self._open[-1]] += now[0] - self._last[0]
        self.wall[self._open[-1]] += now[1] - self._last[1]
        self._last = now

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Charges what is inside to a stage."""
        self._charge()
        self._open.append(stage)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    @property
    def open(self) -> str:
        """The innermost stage."""
        return self._open[-1]

    def turn(self, stage: str) -> None:
        """From here on, the open stage is this one."""
        self._charge()
        self._open[-1] = stage

    def seconds(self) -> Seconds:
        """Of all stages."""
        self._charge()
        return {stage: (self.cpu[stage], self.wall[stage]) for stage in self.wall}


def watch(laps: Laps) -> None:
    """Has the export's steps timed, in this process."""
    steps: list[tuple[Any, str, str]] = [
        (job, "load", "load"), (capture, "capture", "capture"), (program, "translate", "translate"),
        (save, "save", "save"), (state, "digest", "digests"), (canonical, "captured", "digests"),
        (canonical, "decomposed", "digests"),
        (gather, "gather", "boundary cases"), (gather.scan, "scan", "scan"), (gather.batch, "plan", "batches tried"),
        (evaluate, "evaluate", "rest"), (probe, "judge", "probe"), (outside, "judge", "probe"),
    ]  # fmt: skip
    for module, name, stage in steps:
        setattr(module, name, _timed(laps, stage, getattr(module, name)))
    call = evaluate.redraw.call

    def turning(subject: Any, case: Any) -> Any:
        laps.turn("boundary cases" if case.origin == "boundary" else "rest")
        return call(subject, case)

    truth = evaluate._truth

    def turning_truth(*args: Any) -> Any:
        with laps(ORACLE if laps.open == "boundary cases" else "rest"):
            return truth(*args)

    evaluate.redraw.call, evaluate._truth = turning, turning_truth


def _timed(laps: Laps, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        with laps(stage):
            return function(*args, **kwargs)

    return timed


def spec(name: str) -> JobSpec:
    """The job of a model: one input, two dims."""
    model = ModelSpec(
        name=name, entrypoint="encoder.py:build", kwargs=dict(MODELS[name]),
        inputs={"ids": InputSpec(dtype="int64", shape=["batch", "length"], low=0, high=999)},
        dims={"batch": DimSpec(min=1, max=8, example=2), "length": DimSpec(min=1, max=128, example=48)},
    )  # fmt: skip
    return JobSpec(model=model, targets=[], latency=LatencySpec(budget_seconds=1.0))


def first(asked: JobSpec, folder: str) -> tuple[Seconds, dict[str, Any]]:
    """The first export; gives its seconds, and what it says of itself."""
    laps = Laps()
    watch(laps)
    result = job.export(ExportRequest(job=asked, root=str(ROOT), artifact=folder), lambda _: None)
    return laps.seconds(), next(one.data for one in result.findings if one.rule == "export.exported")


def again(asked: JobSpec, folder: str, digests: dict[str, str]) -> tuple[Seconds, str]:
    """The second export; gives its seconds, and its verdict."""
    laps = Laps()
    with laps("second export"):
        found = second.reexport(ReexportRequest(job=asked, root=str(ROOT), artifact=folder, **digests), lambda _: None)
    return laps.seconds(), found.findings[0].message


def forked(function: Callable[..., Any], *args: Any) -> Any:
    """What a function gives in a fresh process."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(function, args)


def once(name: str) -> tuple[Seconds, str]:
    """All stages of a model in one round."""
    asked = spec(name)
    with tempfile.TemporaryDirectory() as root:
        folder = f"{root}/artifact"
        taken, data = forked(first, asked, folder)
        more, verdict = forked(again, asked, folder, {one: data.get(one, "") for one in ("weights", "program")})
    return {**taken, "second export": more["second export"]}, verdict


def main() -> None:
    """Prints the stages and the ratio of each model, with the conditions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=MODELS)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    serve._preload(warm=True)  # as the product's server does
    for name in [given.only] if given.only else MODELS:
        rounds = [once(name) for _ in range(given.rounds)]
        with torch.device("meta"):
            count = sum(one.numel() for one in _bare(name).parameters())
        print(f"{name}: {count / 1e6:.1f} million parameters, batch 1 to 8, length 1 to 128, n={given.rounds}")
        for stage in (*EXPORT, *SHAPE, ORACLE, "rest"):
            print(f"  {stage:15} {_middle(rounds, stage, 0):6.2f} s CPU {_middle(rounds, stage, 1):6.2f} s wall")
        for words, stages in (("shape work", SHAPE), ("with their oracle", (*SHAPE, ORACLE))):
            cpu, wall = (statistics.median(_ratio(taken, stages, at) for taken, _ in rounds) for at in (0, 1))
            print(f"  {words} / export: {cpu:.2f} CPU, {wall:.2f} wall")
        print(f"  {rounds[-1][1]}")
    versions = f"torch {torch.__version__}, onnx {onnx.__version__}, onnxscript {onnxscript.__version__}"
    print(f"{versions}, onnxruntime {onnxruntime.__version__}, Python {platform.python_version()}")
    load = f"load {os.getloadavg()[0]:.1f}"
    print(f"{platform.platform()}, {len(os.sched_getaffinity(0))} cores, {torch.get_num_threads()} thread, {load}")


def _bare(name: str) -> torch.nn.Module:
    import encoder

    return encoder.build(**MODELS[name])


def _middle(rounds: list[tuple[Seconds, str]], stage: str, at: int) -> float:
    return statistics.median(taken.get(stage, (0.0, 0.0))[at] for taken, _ in rounds)


def _ratio(taken: Seconds, stages: tuple[str, ...], at: int) -> float:
    return _sum(taken, stages, at) / _sum(taken, EXPORT, at)


def _sum(taken: Seconds, stages: tuple[str, ...], at: int) -> float:
    return sum(taken.get(stage, (0.0, 0.0))[at] for stage in stages)


if __name__ == "__main__":
    main()
