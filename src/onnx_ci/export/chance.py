"""Whether two calls with the same input give the same: ``export.random``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from onnx_ci.export import arguments, seeded, state, wallclock
from onnx_ci.export.agreement import Difference, differ
from onnx_ci.export.places import Place, Places, spot
from onnx_ci.export.types import Call, Outputs
from onnx_ci.export.wallclock import Read
from onnx_ci.numerics.words import some
from onnx_ci.records.result import Finding, finding

RULE = "export.random"
_UNEXPLAINED = 1e-2
"""relL2 above which two equal calls that differ for no visible reason are more than an unordered sum."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the first two calls of the module showed.

    Attributes:
        first: The first one's outputs, with all generators seeded with 0.
        drawn: Whether it drew random numbers.
        again: How an equal call differed.
        clock: The clocks that it read.
    """

    first: Outputs
    drawn: bool
    again: Difference
    clock: Sequence[Read]


def judge(module: torch.nn.Module, call: Call, seen: Seen, places: Places | None) -> Finding:
    """The verdict; calls the module again where it drew a number or read a clock."""
    if seen.again:  # equal seeds, nothing written: a generator of its own, or sums in no fixed order
        status = "fail" if seen.again.relative > _UNEXPLAINED else "warn"
        said = f"nondeterministic: two calls with the same input and seeds differ ({seen.again})"
        return finding(RULE, status, "", said, hint=_HINT)  # type: ignore[arg-type] # one of the two literals
    return _timed(module, call, seen) or _drawn(module, call, seen, places)


def _timed(module: torch.nn.Module, call: Call, seen: Seen) -> Finding | None:
    """The finding on a module whose answer changes with the clock; None for any other."""
    apart = wallclock.effect(module, call, seen.first) if seen.clock else Difference()
    if not apart:
        return None
    names = list(dict.fromkeys(read.clock for read in seen.clock))
    place = next((read.place for read in seen.clock if read.place), None)
    said = f"nondeterministic: forward reads the clock ({some(names)}{_at(place)}), and the same input gets another "
    said += f"answer at another time ({apart})"
    return _failed(names[0], said, place, "Take the time as an input: the file holds that of its export.")


def _drawn(module: torch.nn.Module, call: Call, seen: Seen, places: Places | None) -> Finding:
    if not seen.drawn:
        return finding(RULE, "pass", "", "forward draws no random numbers")
    with state.preserved(module):
        apart = differ(seen.first, seeded.run(module, call, 1))
    if not apart:
        return finding(RULE, "pass", "", "forward draws random numbers, without effect on the outputs")
    draws = _draws(module, call, places)
    names = list(dict.fromkeys(draw.operator for draw in draws)) or ["numpy's or Python's generator"]
    place = next((draw.place for draw in draws if draw.place), None)
    said = f"nondeterministic: forward draws random numbers ({some(names)}{_at(place)}), and two calls with the same "
    return _failed(names[0], f"{said}input differ ({apart})", place, _HINT)


def _failed(subject: str, said: str, place: Place | None, hint: str) -> Finding:
    return finding(RULE, "fail", subject, said, hint=hint, **spot(place))


def _at(place: Place | None) -> str:
    return f", {place.shown}" if place else ""


_HINT = "Take the noise as an input, or leave it out in eval mode: functional dropout needs training=self.training."


@dataclass(frozen=True, slots=True)
class _Draw:
    operator: str
    place: Place | None


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's own, not annotated
    """Notes each operator that moves torch's random generator."""

    def __init__(self, places: Places | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.draws: list[_Draw] = []
        self._places = places

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = torch.get_rng_state()
        result = func(*args, **(kwargs or {}))
        if not torch.equal(before, torch.get_rng_state()):
            place = self._places.of_frame(sys._getframe()) if self._places else None
            self.draws.append(_Draw(str(func).removesuffix(".default"), place))
        return result


def _draws(module: torch.nn.Module, call: Call, places: Places | None) -> list[_Draw]:
    recorder = _Recorder(places)
    with state.preserved(module), recorder:
        arguments.call(module, call)
    return recorder.draws
