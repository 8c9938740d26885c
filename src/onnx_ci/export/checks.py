"""Whether the reference may serve as one: in eval mode, without state, and without chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from onnx_ci.export import chance, held, mode, seeded, state, wallclock
from onnx_ci.export.agreement import Difference, differ
from onnx_ci.export.held import Other, Written
from onnx_ci.export.mode import Modes
from onnx_ci.export.places import Places
from onnx_ci.export.types import Call, Outputs
from onnx_ci.export.wallclock import Read
from onnx_ci.records.result import Finding, finding

_RULES = ("export.training-mode", "contract.state", "export.random")


def _none() -> Iterator[Other]:
    return iter(())


def mode_and_state_findings(
    module: torch.nn.Module, call: Call, places: Places | None = None, others: Callable[[], Iterator[Other]] = _none
) -> list[Finding]:
    """Calls the module a few times on the example; buffers, random generators and modes are left as found.

    Emits ``export.training-mode``, ``contract.state`` and ``export.random``, each with its own verdict. `others` gives
    other inputs, which a module that keeps something is called with after the example.
    """
    seen = _seen(module, call, places)
    if seen.first.error:
        return [finding(rule, "skip", "", f"the module raised {seen.first.error}") for rule in _RULES]
    told, reference = mode.judge(module, call, seen.first, seen.modes, places)
    if reference is not module:
        seen = _seen(reference, call, places)
    return [told, *_state_and_chance(reference, call, seen, places, others)]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What two equal calls of a module showed, the second in the state that the first one left."""

    first: Outputs
    modes: Modes
    clock: list[Read]
    drawn: bool
    written: Written
    again: Difference


def _seen(module: torch.nn.Module, call: Call, places: Places | None) -> _Seen:
    with state.preserved(module, weights=True) as kept:
        with mode.watched(module) as modes, wallclock.watched(module, places) as clock:
            first = seeded.run(module, call)
        drawn, written = seeded.drew(), Written.of(kept)
        again = Difference() if first.error else differ(first, seeded.run(module, call))
    return _Seen(first, modes, clock, drawn, written, again)


def _state_and_chance(
    module: torch.nn.Module,
    call: Call,
    seen: _Seen,
    places: Places | None,
    others: Callable[[], Iterator[Other]],
) -> list[Finding]:
    again = seen.again
    if again and seen.written and held.repeats(module, call, seen.first):
        told = held.failed(seen.written, f"a second call with the same input differs ({again})")
        again = Difference()
    else:
        told = held.judge(module, call, seen.written, others)
    return [told, chance.judge(module, call, chance.Seen(seen.first, seen.drawn, again, seen.clock), places)]
