"""Whether a submodule is in training mode when it is called, and whether that matters: ``export.training-mode``."""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from onnx_ci.export import seeded, state
from onnx_ci.export.agreement import Difference, differ
from onnx_ci.export.places import Place, Places, spot
from onnx_ci.export.types import Call, Outputs
from onnx_ci.numerics.words import some
from onnx_ci.records.result import Finding, finding

RULE = "export.training-mode"
_MOST_FLIPPED = 32
_DROPOUTS = (
    torch.nn.Dropout,
    torch.nn.Dropout1d,
    torch.nn.Dropout2d,
    torch.nn.Dropout3d,
    torch.nn.AlphaDropout,
    torch.nn.FeatureAlphaDropout,
)
_BEFORE = "Call .eval() on the module before the entrypoint returns it, and nowhere .train() after."
_INSIDE = "Take the .train() out of forward: what is exported computes as it does there."


@dataclass(slots=True)
class Modes:
    """The submodules in training mode, by name, in one call.

    Attributes:
        before: When it began.
        switched: Those that forward itself put there, be it for a while.
        ran: Those that were in it when they were called, or when the call was over.
    """

    before: dict[str, torch.nn.Module]
    switched: dict[str, torch.nn.Module] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)


@contextlib.contextmanager
def watched(module: torch.nn.Module) -> Iterator[Modes]:
    """Notes the modes during one call; by a hook on all modules, since one of its own can change what a module does."""
    names = {part: name for name, part in module.named_modules()}
    modes = Modes({name: part for part, name in names.items() if part.training})
    called: dict[torch.nn.Module, bool] = {}

    def note(part: torch.nn.Module, _: Any) -> None:
        if part in names:
            called[part] = called.get(part, False) or part.training

    handle = torch.nn.modules.module.register_module_forward_pre_hook(note)
    try:
        yield modes
    finally:
        handle.remove()
        modes.ran = [names[part] for part, training in called.items() if training or part.training]
        training = {name: part for part, name in names.items() if part.training or called.get(part)}
        modes.switched = {name: part for name, part in training.items() if name not in modes.before}


def judge(
    module: torch.nn.Module, call: Call, first: Outputs, modes: Modes, places: Places | None
) -> tuple[Finding, torch.nn.Module]:
    """The verdict, and the module to judge further: the eval copy where the mode has an effect."""
    training = modes.before | modes.switched
    if not training:
        return finding(RULE, "pass", "", "every submodule is in eval mode"), module
    culprits = [name for name in modes.ran if _acts_in_training(training[name])]
    trained: list[Place | None] = []
    twin = _eval_copy(module, trained, places)
    difference, reason = Difference(), "; its eval copy can't be made"
    if twin is not None:
        with state.preserved(twin):
            other = seeded.run(twin, call)
        difference = Difference() if other.error else differ(first, other)
        reason = f"; the eval copy raised {other.error}" if other.error else ""
        if difference and not culprits:
            culprits = _flipped(twin, call, other, modes.ran)
    names = culprits or list(modes.switched or training)
    inside = all(name in modes.switched for name in names)
    hint = _INSIDE if inside else _BEFORE
    if not difference and not culprits:
        listed = _listed(training, names)
        said = f"forward puts {listed} in training mode" if inside else f"{listed} {_are(names)} in training mode"
        return finding(RULE, "warn", "", f"{said}, without effect on the outputs{reason}", hint=hint), module
    effect = f"; the outputs are not those of its eval copy ({difference})" if difference else reason
    named = f"forward puts {_listed(training, names)}" if inside else f"{_listed(training, names)} {_are(names)}"
    place = next(filter(None, trained), None) if inside else None
    return finding(
        RULE, "fail", (culprits or [""])[0], f"reference is in training mode: {named} in training mode{effect}",
        hint=hint, data={"training": names}, **spot(place),
    ), twin or module  # fmt: skip


def _acts_in_training(part: torch.nn.Module) -> bool:
    """Whether training mode changes what a module of torch's own computes."""
    if isinstance(part, _DROPOUTS):
        return bool(part.p > 0)
    if isinstance(part, torch.nn.RReLU):
        return bool(part.lower != part.upper)
    if isinstance(part, torch.nn.RNNBase):
        return bool(part.dropout > 0 and part.num_layers > 1)
    if isinstance(part, torch.nn.MultiheadAttention):
        return bool(part.dropout > 0)
    return getattr(part, "track_running_stats", False) is True and hasattr(part, "running_mean")


def _eval_copy(module: torch.nn.Module, trained: list[Place | None], places: Places | None) -> torch.nn.Module | None:
    """A copy that stays in eval mode: where forward calls train() is noted, and that it is called has no effect.

    None for a module that can't be copied, which is then judged by its submodules alone.
    """
    try:
        twin = copy.deepcopy(module).eval()
    except Exception:
        return None

    def muted(part: torch.nn.Module) -> Any:
        def train(mode: bool = True) -> torch.nn.Module:
            if mode:
                trained.append(places.of_frame(sys._getframe()) if places else None)
                return part
            return type(part).train(part, False)

        return train

    for part in twin.modules():
        vars(part)["train"] = muted(part)
    return twin


def _flipped(twin: torch.nn.Module, call: Call, expected: Outputs, names: Sequence[str]) -> list[str]:
    """The submodules whose own training flag alone changes the eval copy's outputs, as functional dropout does."""
    found = []
    for name in names[:_MOST_FLIPPED]:
        part = twin.get_submodule(name)
        part.training = True
        with state.preserved(twin):
            if differ(expected, seeded.run(twin, call)):
                found.append(name)
        part.training = False
    return found


def _listed(training: dict[str, torch.nn.Module], names: Sequence[str]) -> str:
    return some([f"{name or 'the module itself'} ({type(training[name]).__name__})" for name in names])


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
