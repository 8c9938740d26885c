"""Whether forward reads the clock, and what it answers at another time: a file holds the time of its export."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from onnx_ci.export import seeded, state
from onnx_ci.export.agreement import Difference, differ
from onnx_ci.export.places import Place, Places
from onnx_ci.export.types import Call, Outputs

SHIFTS = (3_607.3, 1_000_003.1)
"""Seconds: an hour and twelve days, and no multiple of what people count in."""
_CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")
_NOT_THE_MODELS = sys.stdlib_module_names | {"torch", "numpy", "onnx_ci"}


@dataclass(frozen=True, slots=True)
class Read:
    """A clock that the model's code read, and where."""

    clock: str
    place: Place | None


@contextlib.contextmanager
def watched(module: torch.nn.Module, places: Places | None = None, *, shift: float = 0.0) -> Iterator[list[Read]]:
    """Notes the clocks that the model's code reads, and lets it see a time that is `shift` seconds on.

    Standard library and torch see the real one. `datetime` and code in C can't be watched.
    """
    reads: list[Read] = []
    clocks = {getattr(time, name): _watching(name, reads, places, shift) for name in _CLOCKS}
    with contextlib.ExitStack() as stack:
        for names in [vars(time), *_namespaces(module)]:
            for name, value in list(names.items()):
                if callable(value) and _is_clock(value, clocks):
                    stack.callback(names.__setitem__, name, value)
                    names[name] = clocks[value]
        yield reads


def effect(module: torch.nn.Module, call: Call, now: Outputs) -> Difference:
    """How the answer to one input differs at other times; `now` is that of `seeded.run` in the present."""
    for shift in SHIFTS:
        with state.preserved(module), watched(module, shift=shift):
            apart = differ(now, seeded.run(module, call))
        if apart:
            return apart
    return Difference()


def _watching(name: str, reads: list[Read], places: Places | None, shift: float) -> Callable[[], Any]:
    real = getattr(time, name)
    further = int(shift * 1e9) if name.endswith("_ns") else shift

    def read() -> Any:
        caller = sys._getframe(1)
        if _is_the_models(caller):
            reads.append(Read(f"time.{name}", places.of_frame(caller) if places else None))
            return real() + further
        return real()

    return read


def _is_clock(value: Any, clocks: dict[Any, Any]) -> bool:
    return any(value is clock for clock in clocks)


def _is_the_models(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] not in _NOT_THE_MODELS


def _namespaces(module: torch.nn.Module) -> list[dict[str, Any]]:
    """The globals of the files that the model's own classes stand in: they may have imported a clock by name."""
    found = {}
    for part in module.modules():
        names = getattr(getattr(type(part), "forward", None), "__globals__", None)
        if names is not None and str(names.get("__name__", "")).partition(".")[0] not in _NOT_THE_MODELS:
            found[id(names)] = names
    return list(found.values())
