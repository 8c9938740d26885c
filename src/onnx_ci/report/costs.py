"""What a run of a file costs, in markdown: latency and the peak of memory, a row for each file and case."""

from __future__ import annotations

from onnx_ci.records.report import Report
from onnx_ci.records.result import Memory, label
from onnx_ci.report.escape import code, prose
from onnx_ci.report.numbers import NONE, count, milliseconds, size
from onnx_ci.report.table import grid

PEAK_LEGEND = (
    "The most resident memory of a process that opens the file and runs its largest case, above what it held before; "
    "of a device what is given out there. Shown, never judged."
)
_RUNNERS = {"onnxruntime": "ONNX Runtime", "eager": "PyTorch eager", "base": "base's file"}


def latency(report: Report) -> list[str]:
    """Every timing with its percentiles; empty where nothing was timed."""
    rows = [
        [
            code(label(one.model, one.variant), limit=80),
            prose(one.target, limit=40),
            prose(timing.case, limit=60),
            f"{_runner(timing.runner)}, {count(timing.threads, 'thread')}",
            milliseconds(timing.p50_ms),
            f"{milliseconds(timing.p90_ms)} / {milliseconds(timing.p99_ms)}",
            str(len(timing.samples_ms)),
        ]
        for one in report.results
        for timing in one.latency
    ]
    return [grid(["Model", "Target", "Case", "Runner", "p50", "p90 / p99", "Samples"], rows)] if rows else []


def memory(report: Report) -> list[str]:
    """The peak of each file, the base's below it; what was not measured has its reason."""
    rows = [
        [
            code(label(one.model, one.variant), limit=80),
            prose(one.target, limit=40),
            prose(peak_case(peak), limit=120),
            _runner(peak.runner),
            _peak(peak.host_bytes, peak.host_note),
            _peak(peak.device_bytes, peak.device_note),
        ]
        for one in report.results
        for peak in one.memory
    ]
    return [PEAK_LEGEND, "", grid(["Model", "Target", "Case", "Runner", "Host", "Device"], rows)] if rows else []


def peak_case(peak: Memory) -> str:
    """The case with its sizes; they are what a peak depends on first."""
    sizes = ", ".join(f"{dim}={size}" for dim, size in peak.dims.items())
    return f"{peak.case} ({sizes})" if sizes else peak.case or NONE


def _runner(name: str) -> str:
    return prose(_RUNNERS.get(name, name), limit=20)


def _peak(found: int | None, note: str) -> str:
    return size(found) + (f"<br><sub>{prose(note, limit=200)}</sub>" if note else "")
