"""The peak of memory with a file open and run at its largest case: shown beside latency, never gated.

In a process that has opened no session before: what an earlier one has freed stays with the process, and a later one
that takes it up again would seem to need less than it does. So it has no part in any timing either.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from onnx_ci.artifact.layout import Artifact
from onnx_ci.artifact.tensors import Value
from onnx_ci.errors import OnnxCiError
from onnx_ci.records.cases import Case
from onnx_ci.records.messages import MemoryRequest
from onnx_ci.records.model import CPU
from onnx_ci.records.result import Memory
from onnx_ci.verify import nvml, profile, resident
from onnx_ci.verify.nvml import NvmlError
from onnx_ci.verify.opener import Opener
from onnx_ci.verify.parity import feeds_for, read_inputs
from onnx_ci.verify.session import RUNTIME_VERSION, RuntimeFault

RUNS = 2
"""The first shows ONNX Runtime what it needs; the second takes that in one piece, beside what was kept of the first."""
_TENSORRT = "TensorrtExecutionProvider"
_NVIDIA = ("CUDAExecutionProvider", _TENSORRT)
_WITH_DEVICE = (*_NVIDIA, "DmlExecutionProvider", "MIGraphXExecutionProvider", "ROCMExecutionProvider")
"""Whose allocator gives out memory of a device; others' inputs and outputs are in the host's."""


def memory(request: MemoryRequest, progress: Callable[[str], None]) -> Memory:
    """Opens the file once and runs it; what keeps it from that is a note, since nothing fails on memory.

    Raises:
        ArtifactError: The artifact can't be read.
    """
    progress("memory")
    asked = request.verify
    head = Artifact(Path(asked.artifact))
    case = largest(head, head.cases().cases)
    runner = "base" if request.base else "onnxruntime"
    about = Memory(runner=runner, case="", dims={}, provider=asked.target.provider, threads=asked.target.threads)
    if case is None:
        return replace(about, host_note="not measured: there is no case to run")
    about = replace(about, case=case.name, dims=case.dims)
    measured = Artifact(Path(asked.base)) if request.base and asked.base else head
    try:
        return _measured(about, Opener(measured, asked.target, asked.job.model.custom_ops), read_inputs(head, case))
    except RuntimeFault as fault:
        return replace(about, host_note=f"not measured: {fault.message}")
    except OnnxCiError as error:
        return replace(about, host_note=f"not measured: {error}")


def largest(artifact: Artifact, cases: Sequence[Case]) -> Case | None:
    """The case whose inputs are the largest files, the first of several; None where none runs."""
    usable = [case for case in cases if not case.refused and not case.is_special]

    def size(case: Case) -> int:
        return sum(path.stat().st_size for path in artifact.case_folder(case.index).glob("input_*.pb"))

    return max(usable, key=size, default=None)


def _measured(about: Memory, opener: Opener, inputs: Mapping[str, Value]) -> Memory:
    """Profiled where there is a device, since ONNX Runtime tells only in a profile what its allocator gives out."""
    on_device = about.provider in _WITH_DEVICE
    with tempfile.TemporaryDirectory(prefix="onnx-ci-profile-") as folder:
        gc.collect()
        driver = _held() if about.provider in _NVIDIA else None
        before = resident.mark()
        session = opener.open(profile=Path(folder) / "run" if on_device else None)
        feeds, _ = feeds_for(session, inputs)
        for _ in range(RUNS):
            session.run(feeds)
        size, note = resident.above(before)
        found = replace(about, runs=RUNS, host_bytes=size, host_note=note)
        if not on_device:
            untold = "" if about.provider == CPU else f"not measured: nobody tells it of {about.provider}"
            return replace(found, device_note=untold)
        after = _held() if driver is not None else None
        told = profile.device_peak(session.end_profiling(), about.provider)
    device, said = of_device(about.provider, told, driver, after)
    return replace(found, device_bytes=device, device_note=said)


def of_device(
    provider: str, told: int | None, before: int | str | None, after: int | str | None
) -> tuple[int | None, str]:
    """The peak of the device's memory, and who tells it.

    Args:
        provider: The target's.
        told: The peak of ONNX Runtime's own allocator on the device; None where it does not tell.
        before: What the driver says the process held before the session was opened, or why it does not; None where
            nobody was asked.
        after: Likewise after the runs: ONNX Runtime keeps what it took, so this is its peak.
    """
    by_driver = after - before if isinstance(before, int) and isinstance(after, int) and after > before else None
    by_runtime = (told, "by ONNX Runtime: its own allocator, weights included")
    driver = (by_driver, "by the driver: all that the process holds on devices after the runs")
    # TensorRT takes its engine's memory itself, past ONNX Runtime's allocator.
    for size, note in (driver, by_runtime) if provider == _TENSORRT else (by_runtime, driver):
        if size is not None:
            return size, note
    reasons = [f"ONNX Runtime {RUNTIME_VERSION} does not tell it of {provider}"]
    if before is not None:
        said = next((one for one in (before, after) if isinstance(one, str)), "the driver does not list this process")
        reasons.append(said)
    return None, f"not measured: {'; '.join(reasons)}"


def _held() -> int | str:
    """What the driver says that this process holds; nothing where it lists it on no device."""
    try:
        return nvml.held(nvml.load()) or 0
    except (NvmlError, AttributeError) as error:
        return str(error)
