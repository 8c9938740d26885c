"""The smallest submodule that still stops an export: each child is exported alone, on the inputs that it really gets.

From the module down: of the parts that a part calls, the first that stops in the same way is gone into. A part that
can't be run alone stops in another way, or not at all, and is passed over.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from onnx_ci.export import arguments, capture, cases, dimtree, program, retry, stops
from onnx_ci.export.capture import Captured
from onnx_ci.export.guardlog import GuardLog
from onnx_ci.export.loading import Loaded
from onnx_ci.export.options import Options
from onnx_ci.export.places import Places
from onnx_ci.export.sizes import Plan
from onnx_ci.export.state import preserved
from onnx_ci.export.stops import Step, Stop
from onnx_ci.export.types import Call

MOST_EXPORTS = 40
_MOST_EXAMPLES = 3
"""Other sizes that the module may refuse before all sizes count as fixed."""
Shapes = list[tuple[int, ...] | None]
"""Of each leaf of a call; None for one that is no tensor."""


@dataclass(frozen=True, slots=True)
class Part:
    """A submodule and how it was called.

    Attributes:
        name: Its path; "" for the whole module.
        nth: Which of the calls of this module it was, from 0.
    """

    name: str
    module: torch.nn.Module
    call: Call
    nth: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """How the export of the whole stopped: what the export of a part is held against."""

    step: str
    kind: str
    operator: str

    def fits(self, stop: Stop | None) -> bool:
        """Whether another export stopped in the same way."""
        return stop is not None and (stop.step, stop.kind, stop.operator) == (self.step, self.kind, self.operator)


@dataclass(slots=True)
class Search:
    """The way down.

    Attributes:
        time_left: Whether another export may begin.
        note: Told the name of each part that is tried, before it is.
        exports: How many there were.
        ended: Why the search was broken off; "" where it was not.
    """

    given: Loaded
    wanted: Wanted
    time_left: Callable[[], bool]
    note: Callable[[str], None]
    exports: int = 0
    ended: str = ""
    _varying: dict[tuple[str, int], list[list[int]]] = field(default_factory=dict)

    def smallest(self, call: Call, hint: str) -> Part:
        """The smallest part that stops as wanted.

        Args:
            call: Of the whole module.
            hint: Path of the submodule that was at work when the whole stopped, "" where that is not known.
        """
        root = self.given.loaded.module
        self._varying = varying_axes(self.given, call)
        current = Part("", root, call)
        if hint:  # the way from the top is only needed where this one does not stop by itself
            current = next((one for one in calls_of(current, only=hint) if self._stops(one)), current)
        while True:
            inner = sorted(calls_of(current), key=lambda one: not f"{hint}.".startswith(f"{one.name}."))
            below = next((one for one in inner if self._stops(one)), None)
            if below is None:
                return current
            current = below

    def _stops(self, part: Part) -> bool:
        if not self.ended and self.exports >= MOST_EXPORTS:
            self.ended = f"{MOST_EXPORTS} exports were made"
        elif not self.ended and not self.time_left():
            self.ended = "its time was up"
        if self.ended:
            return False
        self.exports += 1
        self.note(part.name)
        return self.wanted.fits(
            stop_of(part, self.axes_of(part), self.given.options, self.given.places, self.wanted.step)
        )

    def axes_of(self, part: Part) -> list[list[int]] | None:
        """Of each leaf of the part's call, the axes whose sizes vary; None where all are fixed."""
        return self._varying.get((part.name, part.nth))


def stop_of(part: Part, axes: list[list[int]] | None, options: Options, places: Places, step: str) -> Stop | None:
    """Exports a part alone, up to the step that is asked about, and says how that stops; None when it does not."""
    log, at = GuardLog(), "capture"
    captured: Captured | None = None
    call = _copied(part.call)
    try:
        with preserved(part.module):
            if options.exporter == "torchscript":
                at = "tracing"
                flat = Flat(part.module, call)
                names, table = flat.axes(axes)
                program.torchscript(flat, Call(flat.tensors, {}), options, names, table)
            else:
                captured = capture.capture(part.module, call, dynamic_shapes(part.module, call, axes), log, places)
                at = "translation"
                if step != "capture":
                    program.translate(captured, options, {})
    except Exception as error:  # whatever it is, it is what is looked at
        reached: Step = "tracing" if at == "tracing" else "capture" if at == "capture" else "translation"
        return stops.read(error, reached, log, places, part.module, captured.program if captured else None)
    return None


def dynamic_shapes(module: torch.nn.Module, call: Call, axes: list[list[int]] | None) -> Any:
    """torch.export's tree: a size that varies is left to the capture; None when none does."""
    if axes is None or not any(axes):
        return None
    free = torch.export.Dim.AUTO
    return dimtree.shaped(module, call, [dict.fromkeys(one, free) if one else None for one in axes])


class Flat(torch.nn.Module):
    """A part as a module of tensors by position, since the older exporter knows of no keywords."""

    def __init__(self, part: torch.nn.Module, call: Call) -> None:
        super().__init__()
        self.part = part
        self.leaves, self.form = pytree.tree_flatten((call.args, call.kwargs))
        self.at = [at for at, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]
        self.tensors = tuple(self.leaves[at] for at in self.at)
        self.train(part.training)

    def forward(self, *tensors: torch.Tensor) -> Any:
        """The part, on its tensors by position."""
        leaves = list(self.leaves)
        for at, tensor in zip(self.at, tensors, strict=True):
            leaves[at] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.form)
        return self.part(*args, **kwargs)

    def axes(self, axes: list[list[int]] | None) -> tuple[list[str], dict[str, list[int]]]:
        """Names for the tensors, and the older exporter's table of the axes that vary."""
        names = [f"input_{at}" for at in self.at]
        of_tensors = [axes[at] if axes else [] for at in self.at]
        return names, {name: one for name, one in zip(names, of_tensors, strict=True) if one}


def calls_of(part: Part, only: str = "") -> list[Part]:
    """The calls of submodules that one eager call of a part makes itself, in order; or all calls of a single submodule.

    A module that is called again with inputs of the same shapes is named once.
    """
    found: list[Part] = []
    seen: set[tuple[str, str]] = set()
    counts: dict[str, int] = {}

    def note(name: str, module: torch.nn.Module, call: Call, depth: int) -> None:
        nth = counts[name] = counts.get(name, -1) + 1
        path = ".".join(one for one in (part.name, name) if one)
        key = (name, str(_shapes(call)))
        if (path == only if only else depth == 0) and key not in seen:
            seen.add(key)
            found.append(Part(path, module, _copied(call), nth))

    with _watched(part.module, note):
        arguments.call(part.module, part.call)
    return found


def varying_axes(given: Loaded, call: Call) -> dict[tuple[str, int], list[list[int]]]:
    """For each call of each submodule, the axes of its leaves that other sizes of the declared dims change.

    Empty where no dim is declared, or where the module takes no other sizes.
    """
    module, declared = given.loaded.module, given.declared
    here = _all_shapes(module, call)
    sizes = retry.others(declared, given.example.dims, declared.dims)
    for moved in itertools.islice(sizes, _MOST_EXAMPLES):
        plan = Plan(given.example.name, "", moved)
        other = given.call(cases.make(plan, declared, given.example, given.user))
        there = _all_shapes(module, other)
        if there:
            return {key: _differing(one, there[key]) for key, one in here.items() if key in there}
    return {}


def _all_shapes(module: torch.nn.Module, call: Call) -> dict[tuple[str, int], Shapes]:
    """Of each call of each submodule, and of the module's own; empty when it raises."""
    found: dict[tuple[str, int], Shapes] = {("", 0): _shapes(call)}
    counts: dict[str, int] = {}

    def note(name: str, module: torch.nn.Module, call: Call, depth: int) -> None:
        counts[name] = counts.get(name, -1) + 1
        found[name, counts[name]] = _shapes(call)

    with _watched(module, note):
        return {} if arguments.call(module, call).error else found


@contextmanager
def _watched(module: torch.nn.Module, note: Callable[[str, torch.nn.Module, Call, int], None]) -> Iterator[None]:
    """Tells of each call of a submodule: its path, itself, the call, and how many submodules deep it is made."""
    depth = 0
    handles: list[Any] = []

    def before(name: str) -> Callable[..., None]:
        def hook(part: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            nonlocal depth
            note(name, part, Call(args, kwargs), depth)
            depth += 1

        return hook

    def after(*_: object) -> None:
        nonlocal depth
        depth -= 1

    try:
        for name, part in module.named_modules():
            if name and not isinstance(part, torch.jit.ScriptModule):
                handles.append(part.register_forward_pre_hook(before(name), with_kwargs=True))
                handles.append(part.register_forward_hook(after, always_call=True))
        with preserved(module):
            yield
    finally:
        for handle in handles:
            handle.remove()


def _shapes(call: Call) -> Shapes:
    leaves = pytree.tree_leaves((call.args, call.kwargs))
    return [tuple(leaf.shape) if isinstance(leaf, torch.Tensor) else None for leaf in leaves]


def _differing(here: Shapes, there: Shapes) -> list[list[int]]:
    if len(here) != len(there):
        return [[] for _ in here]
    return [_axes(one, other) for one, other in zip(here, there, strict=True)]


def _axes(one: Sequence[int] | None, other: Sequence[int] | None) -> list[int]:
    if one is None or other is None or len(one) != len(other):
        return []
    return [at for at, (size, moved) in enumerate(zip(one, other, strict=True)) if size != moved]


def _copied(call: Call) -> Call:
    """With tensors of its own, since a part may write to what it is given."""

    def copy(value: Any) -> Any:
        return value.detach().clone() if isinstance(value, torch.Tensor) else value

    args, kwargs = pytree.tree_map(copy, (call.args, call.kwargs))
    return Call(args, kwargs)
