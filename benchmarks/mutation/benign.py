"""Sound files in circumstances that change their numbers a little: every one of them must pass."""

from __future__ import annotations

import contextlib
import io
import itertools
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import onnxruntime
from benchmarks.mutation.exporting import export

from onnx_ci.artifact.layout import Artifact
from onnx_ci.records.messages import VerifyRequest
from onnx_ci.records.model import CPU, LatencySpec
from onnx_ci.records.result import Finding
from onnx_ci.verify import parity
from onnx_ci.verify.job import verify
from onnx_ci.verify.session import Session

INSTRUCTION_SETS: dict[str, dict[str, str]] = {
    "as it is": {},
    "AVX2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "AVX2"},
    "SSE4": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_CBWR": "COMPATIBLE"},
}
"""What the libraries under torch may use: its own kernels, oneDNN's, MKL's. ONNX Runtime has no such switch."""
LEVELS = {
    "none": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
THREADS = (1, 2)
LARGE = ("classifier", "face_proposals", "resnet", "segmenter")
_SIDE = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What one export is of, and where PyTorch's outputs were made."""

    config: str
    model: str
    instructions: str
    side: int | None = None

    @property
    def name(self) -> str:
        """For people."""
        size = f" up to {self.side}²" if self.side else ""
        return f"{self.model}{size}, PyTorch on {self.instructions}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One judgement of a sound file, and what it wrongly failed."""

    name: str
    alarms: list[str]


def planned(models: Mapping[str, Sequence[str]]) -> list[Circumstances]:
    """Every model on every instruction set, then those that take large images with large ones."""
    every = [(config, name) for config, names in models.items() for name in names]
    plain = [
        Circumstances(config=config, model=name, instructions=instructions)
        for instructions, (config, name) in itertools.product(INSTRUCTION_SETS, every)
    ]
    large = [
        Circumstances(config=config, model=name, instructions=instructions, side=_SIDE)
        for instructions, (config, name) in itertools.product(INSTRUCTION_SETS, every)
        if name in LARGE
    ]
    return [*large, *plain]


def judged(where: Circumstances, scratch: str) -> list[Run]:
    """Exports in the circumstances, then judges the file at every optimization level and number of threads."""
    with TemporaryDirectory(dir=scratch) as folder:
        artifact = Path(folder) / where.model
        switches = INSTRUCTION_SETS[where.instructions]
        wrong = export(where.config, where.model, artifact, side=where.side, environment=switches)
        if wrong:
            return [Run(name=f"{where.name}: export", alarms=[wrong])]
        with contextlib.redirect_stderr(io.StringIO()):  # a log of cases
            return list(_runs(where, Artifact(artifact)))


def run(models: Mapping[str, Sequence[str]], scratch: Path, *, runs: int, jobs: int) -> int:
    """Judges until there were so many runs; prints each false alarm, and gives back how many there were."""
    done, alarms = 0, list[str]()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(judged, where, str(scratch)): where for where in planned(models)}
        for future in as_completed(waiting):
            found = future.result()
            done += len(found)
            alarms += [f"{one.name}: {alarm}" for one in found for alarm in one.alarms]
            print(f"{done} runs, {len(alarms)} false alarms; the last {waiting[future].name}", flush=True)
            if done >= runs:
                for other in waiting:
                    other.cancel()
                break
    shutil.rmtree(scratch, ignore_errors=True)
    print("\n".join([f"{done} benign runs, {len(alarms)} false alarms", *alarms]))
    return len(alarms)


def _runs(where: Circumstances, artifact: Artifact) -> Iterator[Run]:
    job = replace(artifact.job(), latency=LatencySpec(budget_seconds=0.001))
    request = VerifyRequest(artifact=str(artifact.folder), target=job.targets[0], job=job)
    yield Run(name=f"{where.name}: verify", alarms=_alarms(verify(request, lambda stage: None).findings))
    cases = artifact.cases().cases
    for (level, value), threads in itertools.product(LEVELS.items(), THREADS):
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, threads
        options.graph_optimization_level = value
        handle = onnxruntime.InferenceSession(str(artifact.model), options, providers=[CPU])
        runs = parity.run_cases(Session(handle, asked=CPU), artifact, cases, job.model.parity, twice=False)
        verdict = parity.judge(runs, cases, job.model.parity, "2026-01-01")
        yield Run(name=f"{where.name}: optimization {level}, {threads} threads", alarms=_alarms(verdict.findings))


def _alarms(findings: Sequence[Finding]) -> list[str]:
    return [f"{one.rule} {one.subject}: {one.message}" for one in findings if one.status in ("fail", "error")]
