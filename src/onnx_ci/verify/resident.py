"""What this process holds in memory, and the most it held since a mark: resident bytes, by the system's count."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

from onnx_ci.artifact.machine import peak_bytes

PROCESS = Path("/proc/self")
_RESET = "5"
_LINE = re.compile(r"^(VmRSS|VmHWM):\s+(\d+) kB$", re.MULTILINE)
_UNTOLD = "the system does not tell what a process holds"
_HIDDEN = "the process held more before, and the system does not forget its peak"
_LEAST = "at least: above the most that the process had held before"


@dataclass(frozen=True, slots=True)
class Mark:
    """Where measuring begins, in bytes.

    Attributes:
        now: Held now; None where only the peak is told.
        peak: The most that was held until now.
    """

    now: int | None
    peak: int


def mark(process: Path = PROCESS) -> Mark | None:
    """Forgets the peak so far where the system can (Linux), and says what is held; None where it does not tell."""
    with contextlib.suppress(OSError):
        (process / "clear_refs").write_text(_RESET)
    return _read(process)


def above(before: Mark | None, process: Path = PROCESS) -> tuple[int | None, str]:
    """The most held since a mark, above what was held at it; None where that can't be told.

    Returns:
        Bytes, and a note: why there are none, or what is not as usual.
    """
    after = _read(process)
    if before is None or after is None:
        return None, f"not measured: {_UNTOLD}"
    grew = after.peak > before.peak
    if before.now is None:
        return (after.peak - before.peak, _LEAST) if grew else (None, f"not measured: {_HIDDEN}")
    if grew or before.peak <= before.now:  # a peak that was forgotten begins anew at what is held, and hides nothing
        return max(after.peak - before.now, 0), ""
    return None, f"not measured: {_HIDDEN}"


def _read(process: Path) -> Mark | None:
    try:
        found = {name: int(size) * 1024 for name, size in _LINE.findall((process / "status").read_text())}
    except OSError:
        found = {}
    if len(found) == 2:
        return Mark(now=found["VmRSS"], peak=found["VmHWM"])
    peak = peak_bytes()
    return None if peak is None else Mark(now=None, peak=peak)
