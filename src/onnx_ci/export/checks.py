"""Whether the reference may serve as one: in eval mode, without state, and without chance."""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from onnx_ci.export import arguments, state
from onnx_ci.export.agreement import Difference, differ
from onnx_ci.export.places import Place, Places
from onnx_ci.export.types import Call, Outputs
from onnx_ci.records.result import Finding, finding

_MOST_NAMED = 5
_MOST_FLIPPED = 32
_UNEXPLAINED = 1e-2
"""relL2 above which two equal calls that differ for no visible reason are more than an unordered sum."""
_DROPOUTS = (
    torch.nn.Dropout,
    torch.nn.Dropout1d,
    torch.nn.Dropout2d,
    torch.nn.Dropout3d,
    torch.nn.AlphaDropout,
    torch.nn.FeatureAlphaDropout,
)


def mode_and_state_findings(module: torch.nn.Module, call: Call, places: Places | None = None) -> list[Finding]:
    """Calls the module a few times on the example; buffers, random generators and modes are left as found.

    Emits ``export.training-mode``, ``contract.state`` and ``export.random``, each with its own verdict.
    """
    with state.preserved(module):
        first = _seeded(module, call, 0)
    if first.error:
        said = f"the module raised {first.error}"
        return [finding(rule, "skip", "", said) for rule in ("export.training-mode", "contract.state", "export.random")]
    mode, reference = _mode(module, call, first)
    return [mode, *_state_and_chance(reference, call, places)]


def _mode(module: torch.nn.Module, call: Call, first: Outputs) -> tuple[Finding, torch.nn.Module]:
    """The verdict on training mode, and the module to judge further: the eval copy where the mode has an effect."""
    rule = "export.training-mode"
    training = {name: part for name, part in module.named_modules() if part.training}
    if not training:
        return finding(rule, "pass", "", "every submodule is in eval mode"), module
    ran = _ran(module, call, training)
    culprits = [name for name in ran if _acts_in_training(training[name])]
    twin = _eval_copy(module)
    difference, reason = Difference(), "; its eval copy can't be made"
    if twin is not None:
        with state.preserved(twin):
            other = _seeded(twin, call, 0)
        difference = Difference() if other.error else differ(first, other)
        reason = f"; the eval copy raised {other.error}" if other.error else ""
        if difference and not culprits:
            culprits = _flipped(twin, call, other, ran)
    if not difference and not culprits:
        said = f"{_listed(training, list(training))} in training mode, without effect on the outputs{reason}"
        return finding(rule, "warn", "", said, hint=_EVAL_HINT), module
    named = _listed(training, culprits or list(training))
    effect = f"; the outputs are not those of its eval copy ({difference})" if difference else reason
    said = f"reference is in training mode: {named} in training mode{effect}"
    data = {"training": culprits or list(training)}
    return finding(rule, "fail", (culprits or [""])[0], said, hint=_EVAL_HINT, data=data), twin or module


_EVAL_HINT = "Call .eval() on the module before the entrypoint returns it, and nowhere .train() after."


def _state_and_chance(module: torch.nn.Module, call: Call, places: Places | None) -> list[Finding]:
    with state.preserved(module) as before:
        attributes = _attributes(module)
        first = _seeded(module, call, 0)
        drew = state.RandomState.now()
        drawn = _drew(drew)
        buffers = dict(module.named_buffers())
        written = [name for name, value in before.items() if not state.same_bits(buffers.get(name, value), value)]
        changed = [name for name, value in _attributes(module).items() if attributes.get(name, ())[:2] != value[:2]]
        again = differ(first, _seeded(module, call, 0))
    if again and (written or changed):
        kept = [f"the buffer {name}" for name in written] or [f"the attribute {name}" for name in changed]
        said = f"forward writes {_some(kept)}, and a second call with the same input differs ({again})"
        hint = "The file keeps no state: take it as an input and return it as an output."
        held = finding("contract.state", "fail", (written or changed)[0], said, hint=hint)
        again = Difference()
    else:
        said = (
            f"forward writes {_some(written)}, without effect on the next call" if written else "forward keeps no state"
        )
        held = finding("contract.state", "pass", "", said)
    return [held, _chance(module, call, first, drawn, again, places)]


def _chance(
    module: torch.nn.Module, call: Call, first: Outputs, drawn: bool, again: Difference, places: Places | None
) -> Finding:
    rule = "export.random"
    if again:  # equal seeds, nothing written: a generator of its own, or sums in no fixed order
        status = "fail" if again.relative > _UNEXPLAINED else "warn"
        said = f"nondeterministic: two calls with the same input and seeds differ ({again})"
        return finding(rule, status, "", said, hint=_RANDOM_HINT)  # type: ignore[arg-type] # one of the two literals
    if not drawn:
        return finding(rule, "pass", "", "forward draws no random numbers")
    with state.preserved(module):
        chance = differ(first, _seeded(module, call, 1))
    if not chance:
        return finding(rule, "pass", "", "forward draws random numbers, without effect on the outputs")
    draws = _draws(module, call, places)
    names = list(dict.fromkeys(draw.operator for draw in draws)) or ["numpy's or Python's generator"]
    place = next((draw.place for draw in draws if draw.place), None)
    said = f"nondeterministic: forward draws random numbers ({_some(names)}{f', {place.shown}' if place else ''})"
    return finding(
        rule,
        "fail",
        names[0],
        f"{said}, and two calls with the same input differ ({chance})",
        hint=_RANDOM_HINT,
        file=place.file if place else None,
        line=place.line if place and place.file else None,
    )


_RANDOM_HINT = (
    "Take the noise as an input, or leave it out in eval mode: functional dropout needs training=self.training."
)


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


def _seeded(module: torch.nn.Module, call: Call, seed: int) -> Outputs:
    state.seed(seed)
    return arguments.call(module, call)


def _drew(now: state.RandomState) -> bool:
    """Whether a random number was drawn since `_seeded` seeded with 0."""
    state.seed(0)
    drawn = now.moved()
    now.restore()
    return drawn


def _ran(module: torch.nn.Module, call: Call, training: dict[str, torch.nn.Module]) -> list[str]:
    """The submodules that one call goes through, by name."""
    ran: dict[str, None] = {}
    with contextlib.ExitStack() as stack, state.preserved(module):
        for name, part in training.items():
            handle = part.register_forward_pre_hook(lambda *_, name=name: ran.setdefault(name))
            stack.callback(handle.remove)
        _seeded(module, call, 0)
    return list(ran)


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


def _eval_copy(module: torch.nn.Module) -> torch.nn.Module | None:
    """None for a module that can't be copied, which is then judged by its submodules alone."""
    try:
        return copy.deepcopy(module).eval()
    except Exception:
        return None


def _flipped(twin: torch.nn.Module, call: Call, expected: Outputs, names: Sequence[str]) -> list[str]:
    """The submodules whose own training flag alone changes the eval copy's outputs, as functional dropout does."""
    found = []
    for name in names[:_MOST_FLIPPED]:
        part = twin.get_submodule(name)
        part.training = True
        with state.preserved(twin):
            if differ(expected, _seeded(twin, call, 0)):
                found.append(name)
        part.training = False
    return found


def _attributes(module: torch.nn.Module) -> dict[str, tuple[Any, ...]]:
    """What tells whether something that hangs on a submodule, beside parameters and buffers, was changed."""
    hidden = ("_parameters", "_buffers", "_modules")
    return {
        f"{name}.{key}" if name else key: _mark(value)
        for name, part in module.named_modules()
        for key, value in vars(part).items()
        if key not in hidden
    }


def _mark(value: Any) -> tuple[Any, ...]:
    """Identity, and what grows or moves inside; the value is kept so that its identity is not given to another."""
    inside: Any = ()
    if isinstance(value, torch.Tensor) and not value.is_inference():
        inside = value._version
    elif isinstance(value, Collection) and not isinstance(value, (str, bytes)):
        inside = tuple(id(item) for item in (value.values() if isinstance(value, Mapping) else value))
    return id(value), inside, [value]


def _listed(training: dict[str, torch.nn.Module], names: Sequence[str]) -> str:
    shown = [f"{name or 'the module itself'} ({type(training[name]).__name__})" for name in names]
    return f"{_some(shown)} {'is' if len(names) == 1 else 'are'}"


def _some(names: Sequence[str]) -> str:
    """The first few of a list, in words."""
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else shown
