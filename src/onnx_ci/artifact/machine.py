"""The conditions of a result: versions, machine and providers of this interpreter. Standard library only."""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from onnx_ci import __version__
from onnx_ci.records.environment import Environment, LockFile
from onnx_ci.records.model import LockSpec

_SEPARATORS = re.compile(r"[-_.]+")
_GPU_SECONDS = 5.0


def describe(lock: LockSpec | None = None) -> Environment:
    """Describes this interpreter and the machine it runs on.

    Args:
        lock: The lock files under which the job runs; they are only recorded.
    """
    return Environment(
        onnx_ci=__version__,
        python=platform.python_version(),
        platform=system(),
        cpu=cpu_model(),
        cores=usable_cores(),
        gpu=gpu_name(),
        packages=packages(),
        providers=providers(),
        markers=markers(),
        locks=[LockFile(path=path, sha256=digest) for path, digest in sorted((lock.files if lock else {}).items())],
    )


def today() -> str:
    """The date by the machine's clock, ISO and in UTC."""
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()


def peak_bytes() -> int | None:
    """The largest resident size that this process had, in bytes; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def system() -> str:
    """System, processor family and C library; not the kernel's build, which says more of the host than of a number."""
    library = "".join(platform.libc_ver())
    return "-".join(filter(None, (platform.system(), platform.machine(), library)))


@functools.cache  # a server reads them once for all of its workers
def packages() -> dict[str, str]:
    """Version of every installed distribution by normalized name; the first on the path is the one imported."""
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        name, version = distribution.metadata["Name"], distribution.version
        if name and version:
            found.setdefault(_SEPARATORS.sub("-", name).lower(), version)
    return dict(sorted(found.items()))


def providers() -> list[str]:
    """What ONNX Runtime calls available, best first; empty where it can't be imported."""
    try:
        import onnxruntime
    except ImportError:  # a broken GPU build raises it too: a missing library is an ImportError
        return []
    return list(onnxruntime.get_available_providers())


def markers() -> dict[str, str]:
    """The environment of PEP 508 markers, so that the tool's side can evaluate a lock for this interpreter."""
    info = sys.implementation.version
    version = f"{info.major}.{info.minor}.{info.micro}"
    if info.releaselevel != "final":
        version += f"{info.releaselevel[0]}{info.serial}"
    return {
        "implementation_name": sys.implementation.name,
        "implementation_version": version,
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "python_version": ".".join(platform.python_version_tuple()[:2]),
        "sys_platform": sys.platform,
    }


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's model name, or what Python knows of it."""
    try:
        text = cpuinfo.read_text(errors="replace")
    except OSError:
        text = ""
    named = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", text, re.MULTILINE)
    return named[1].strip() if named else platform.processor() or platform.machine() or "unknown"


def usable_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Cores that this process may use: its affinity, within the container's quota."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(cores, _quota(cgroup) or cores))


def gpu_name() -> str | None:
    """Name and driver of the first GPU, where ``nvidia-smi`` is there to tell."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    command = [tool, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=_GPU_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = said.stdout.strip().splitlines()
    if said.returncode != 0 or not lines:
        return None
    name, _, driver = (part.strip() for part in lines[0].partition(","))
    return f"{name}, driver {driver}" if driver else name


def _quota(cgroup: Path) -> int | None:
    """Whole cores that the control group allows, rounded up; None without a limit."""
    try:
        allowed, period = (cgroup / "cpu.max").read_text().split()[:2]
    except (OSError, ValueError):
        try:
            allowed = (cgroup / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (cgroup / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if not allowed.isdigit() or not period.isdigit() or int(period) == 0:
        return None
    return -(-int(allowed) // int(period))
