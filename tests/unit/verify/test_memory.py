"""The peak of memory: what the system, ONNX Runtime and the driver tell of it, and what is said where they don't."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onnx_ci.artifact.layout import Artifact
from onnx_ci.records.messages import MemoryRequest, VerifyRequest
from onnx_ci.records.model import CPU as CPU_PROVIDER
from onnx_ci.verify import nvml, profile, resident
from onnx_ci.verify.memory import largest, memory, of_device
from onnx_ci.verify.nvml import NvmlError
from onnx_ci.verify.opener import Opener
from onnx_ci.verify.resident import Mark

from .artifacts import CPU, GPU, linear_case, linear_job, write_artifact
from .widening import widening, widening_case

MIB = 1 << 20


def request(artifact: Artifact, **more) -> MemoryRequest:
    asked = VerifyRequest(artifact=str(artifact.folder), target=more.pop("target", CPU), job=linear_job())
    return MemoryRequest(verify=asked, **more)


class Process:
    """What Linux shows of a process, in a folder."""

    def __init__(self, folder: Path, now: int, peak: int) -> None:
        self.folder = folder
        self.tells(now, peak)

    def tells(self, now: int, peak: int) -> None:
        lines = [f"Name:\tpython\nVmHWM:\t  {peak >> 10} kB", f"VmRSS:\t  {now >> 10} kB\nThreads:\t1\n"]
        (self.folder / "status").write_text("\n".join(lines))


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ((100, 100), (120, 300), 200),  # the peak was forgotten
        ((100, 100), (100, 100), 0),
        ((100, 250), (120, 300), 200),  # it was not, and is passed
        ((100, 250), (200, 250), None),  # it was not, and hides what came after
    ],
)
def test_the_peak_is_told_unless_an_earlier_one_hides_it(tmp_path: Path, before, after, found) -> None:
    process = Process(tmp_path, *(size * MIB for size in before))
    mark = resident.mark(tmp_path)
    assert mark == Mark(*(size * MIB for size in before))
    assert (tmp_path / "clear_refs").read_text() == "5"
    process.tells(*(size * MIB for size in after))
    size, note = resident.above(mark, tmp_path)
    assert size == (None if found is None else found * MIB)
    assert note == ("" if found is not None else f"not measured: {resident._HIDDEN}")


def test_where_only_a_peak_is_told_it_is_a_lower_bound_or_nothing(tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="the system tells no peak")
    mark = resident.mark(tmp_path / "nowhere")
    assert mark is not None
    assert mark.now is None
    assert resident.above(Mark(None, mark.peak + (1 << 40)), tmp_path / "nowhere")[0] is None
    size, note = resident.above(Mark(None, 1), tmp_path / "nowhere")
    assert (size or 0) > MIB
    assert note.startswith("at least")


def test_a_system_that_tells_nothing_is_said(tmp_path: Path) -> None:
    assert resident.above(None, tmp_path) == (None, f"not measured: {resident._UNTOLD}")


def test_the_largest_case_is_measured_and_neither_special_nor_refused_ones(tmp_path: Path) -> None:
    made = [linear_case("small", 1), linear_case("large", 7), linear_case("special", 9, "special")]
    artifact = write_artifact(tmp_path / "a", cases=made)
    found = memory(request(artifact), lambda stage: None)
    assert (found.case, found.dims, found.runs, found.runner) == ("large", {"batch": 7}, 2, "onnxruntime")
    assert (found.device_bytes, found.device_note) == (None, "")
    assert largest(artifact, []) is None


def test_a_provider_whose_allocator_is_the_hosts_is_told_apart_from_a_device(healthy: Artifact) -> None:
    azure = replace(CPU, provider="AzureExecutionProvider")  # in every build for the CPU
    found = memory(request(healthy, target=azure), lambda stage: None)
    assert found.runs == 2
    assert (found.device_bytes, found.device_note) == (None, "not measured: nobody tells it of AzureExecutionProvider")


def test_what_does_not_open_is_a_reason(healthy: Artifact) -> None:
    (healthy.folder / "model.onnx").write_bytes(b"no model")
    found = memory(request(healthy), lambda stage: None)
    assert found.host_bytes is None
    assert found.host_note.startswith("not measured: ")


def test_an_artifact_without_cases_is_a_reason(tmp_path: Path) -> None:
    found = memory(request(write_artifact(tmp_path / "a", cases=[])), lambda stage: None)
    assert found.host_note == "not measured: there is no case to run"


def test_the_runtime_tells_the_peak_of_the_allocator_of_a_provider(tmp_path: Path) -> None:
    artifact = write_artifact(tmp_path / "a", model=widening(1 << 20), cases=[widening_case(4)])
    session = Opener(artifact, CPU).open(profile=tmp_path / "run")
    session.run({"x": np.ones((4, 1), np.float32)})
    written = session.end_profiling()
    told = profile.device_peak(written, CPU_PROVIDER)
    if told is not None:  # before ONNX Runtime 1.32
        assert 2 * 16 * MIB <= told < 128 * MIB
    assert profile.device_peak(written, GPU.provider) is None


@pytest.mark.parametrize(
    ("provider", "told", "before", "after", "size", "by"),
    [
        (GPU.provider, 7, 100, 130, 7, "by ONNX Runtime"),
        (GPU.provider, None, 100, 130, 30, "by the driver"),
        ("TensorrtExecutionProvider", 7, 100, 130, 30, "by the driver"),
        ("TensorrtExecutionProvider", 7, "no library", None, 7, "by ONNX Runtime"),
        (GPU.provider, None, "no library", None, None, "no library"),
        (GPU.provider, None, 0, 0, None, "does not list this process"),
        ("DmlExecutionProvider", None, None, None, None, "does not tell it of DmlExecutionProvider"),
    ],
)
def test_the_devices_peak_says_who_tells_it(provider, told, before, after, size, by) -> None:
    found, note = of_device(provider, told, before, after)
    assert found == size
    assert by in note
    assert note.startswith("not measured: ") == (size is None)


class Driver:
    """A library that lists processes on two devices as NVML does: into what the caller points to."""

    def __init__(self, listed: dict[int, list[tuple[int, int]]], code: int = 0) -> None:
        self.listed, self.code, self.open = listed, code, 0

    def nvmlInit_v2(self) -> int:
        self.open += 1
        return self.code

    def nvmlShutdown(self) -> int:
        self.open -= 1
        return 0

    def nvmlDeviceGetCount_v2(self, count) -> int:
        count._obj.value = len(self.listed)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, at, device) -> int:
        device._obj.value = at.value + 1
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(self, device, room, listed) -> int:
        found = self.listed[device.value - 1]
        room._obj.value = len(found)
        for at, (pid, used) in enumerate(found):
            listed[at].pid, listed[at].used = pid, used
        return 0


def test_the_driver_tells_what_one_process_holds_on_all_devices() -> None:
    library = Driver({0: [(7, 100), (8, 1000)], 1: [(7, 20)]})
    assert nvml.held(library, pid=7) == 120
    assert nvml.held(library, pid=9) is None
    assert library.open == 0


@pytest.mark.parametrize(
    ("library", "why"),
    [
        (Driver({}, code=9), "error 9"),
        (Driver({0: [(7, 2**64 - 1)]}), "a single process"),
        (object(), "too old"),
    ],
)
def test_a_driver_that_does_not_tell_is_a_reason(library, why: str) -> None:
    with pytest.raises(NvmlError, match=why):
        nvml.held(library, pid=7)


def test_a_process_has_the_size_that_the_driver_writes() -> None:
    assert ctypes.sizeof(nvml._Process) == 24
