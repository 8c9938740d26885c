"""The memory that this process holds on NVIDIA's devices, as the driver tells it: by ctypes, with no package."""

from __future__ import annotations

import ctypes
import os
from typing import Any

_NAMES = ("libnvidia-ml.so.1", "nvml.dll")
_FULL, _MOST = 7, 1024  # NVML_ERROR_INSUFFICIENT_SIZE
_UNKNOWN = 2**64 - 1  # NVML_VALUE_NOT_AVAILABLE
_LIST = "nvmlDeviceGetComputeRunningProcesses_v3"


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class NvmlError(Exception):
    """It can't be told; the message says why."""


def load() -> Any:
    """The driver's library.

    Raises:
        NvmlError: There is none.
    """
    for name in _NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise NvmlError("the driver's library NVML does not load")


def held(library: Any, pid: int | None = None) -> int | None:
    """Bytes that a process (this one) holds on all devices together; None where it is listed on none.

    In a container with process ids of its own the driver may list it by another one, or not at all.

    Raises:
        NvmlError: The driver does not tell.
    """
    if not hasattr(library, _LIST):
        raise NvmlError("the driver's NVML is too old")
    _ask(library.nvmlInit_v2)
    try:
        count = ctypes.c_uint()
        _ask(library.nvmlDeviceGetCount_v2, ctypes.byref(count))
        found = [one for at in range(count.value) for one in _processes(library, at)]
    finally:
        library.nvmlShutdown()
    own = [one.used for one in found if one.pid == (pid or os.getpid())]
    if _UNKNOWN in own:
        raise NvmlError("the driver does not tell what a single process holds")
    return sum(own) if own else None


def _processes(library: Any, at: int) -> list[_Process]:
    device = ctypes.c_void_p()
    _ask(library.nvmlDeviceGetHandleByIndex_v2, ctypes.c_uint(at), ctypes.byref(device))
    room = ctypes.c_uint(_MOST)
    listed = (_Process * _MOST)()
    _ask(getattr(library, _LIST), device, ctypes.byref(room), listed)
    return list(listed[: room.value])


def _ask(function: Any, *arguments: Any) -> None:
    code = function(*arguments)
    if code == _FULL:
        raise NvmlError(f"more than {_MOST} processes are on a device")
    if code != 0:
        raise NvmlError(f"NVML's {getattr(function, '__name__', 'call')} gives error {code}")
