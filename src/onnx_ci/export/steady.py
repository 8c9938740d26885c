"""Whether the module's answer to tied values is one that rounding leaves alone: else no runtime can be held to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir
import torch

from onnx_ci.export import arguments, program
from onnx_ci.export.oracle import Oracle, Unoracled
from onnx_ci.export.state import answer
from onnx_ci.export.subject import Subject
from onnx_ci.export.types import NamedInputs, Outputs, RunCase

_PLACES = 8
_NUDGE = 2.0**-20
"""So many units in the last place of float32: about what a few layers round."""
_MOST = 1e-4
"""What it may change, of the largest element: a hundred times itself."""
_EXACT_DRAWS, _OWN_DRAWS = (1.0, 1.0, _NUDGE), (1.0, 1.0, 1.0, 1.0, _NUDGE)
"""How often and closely a doubtful answer is looked at, in nudges: an epsilon of 1e-8 lies far below one from zero."""
_CHOOSING = {"TopK", "ArgMax", "ArgMin", "NonMaxSuppression", "Unique"}


@dataclass(frozen=True, slots=True)
class Move:
    """What an output does where tied values are a millionth apart, in float64 and in the module's own dtype.

    Attributes:
        sway: The largest change of an element; None where none can be told: no float64, whole numbers, sequences.
        firm: Whether NaN and infinity stand at the same places all the while: rounding is no excuse for others.
    """

    sway: float | None = None
    firm: bool = False


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a difference may be no fault, empty where the answer stands firm; and how far each output moves."""

    why: str = ""
    moves: Sequence[Move] = ()


def doubt(
    oracle: Oracle | None, subject: Subject, model: ir.Model, case: RunCase, truth: Outputs | None, given: Outputs
) -> Doubt:
    """How far the answer to a case of ties can be relied on.

    Equal scores may be picked in any order, and a norm over equal values divides rounding by next to nothing.

    Args:
        oracle: The module in float64.
        subject: With what the module gives for the example, which tells how large its outputs are.
        model: Of the file.
        case: With the inputs that are tied.
        truth: The outputs of the case in float64; None, as `oracle`, where there are none.
        given: The same in the module's own dtype.
    """
    if not case.tied:
        return Doubt()
    leaves = arguments.paths(case.inputs)
    if not all(leaves[path].dtype.is_floating_point for path in case.tied):
        picks = sorted({node.op_type for node in program.nodes(model)} & _CHOOSING)
        return Doubt(f"{', '.join(picks)} may pick among equal values in any order" if picks else "")
    beside = _Neighbours(oracle, subject, case)
    why = ""
    if oracle is not None and truth is not None:
        try:
            moved = beside.exact(1.0)
        except Unoracled as error:
            why = str(error)
        else:
            pairs = zip(truth.values, moved.values, subject.eager.values, strict=True)
            if len(moved.values) == len(truth.values) and all(_holds(*three) for three in pairs):
                return Doubt()
            why = "a millionth more or less in the equal values changes PyTorch's own answer"
    return Doubt(why, beside.moves(given, truth))


class _Neighbours:
    """The case with its tied values a little apart, inside what is declared of them."""

    def __init__(self, oracle: Oracle | None, subject: Subject, case: RunCase) -> None:
        self._oracle, self._subject, self._case = oracle, subject, case
        self._declared = {item.path: item for item in subject.declared.inputs}
        self._example = arguments.paths(subject.example)
        self._drawn = torch.Generator().manual_seed(0)

    def exact(self, nudges: float) -> Outputs:
        """What the module gives in float64.

        Raises:
            Unoracled: It can't be told.
        """
        assert self._oracle is not None  # who asks has its answer to the case
        inputs = self._inputs(lambda path, leaf: self._nudged(path, leaf, nudges * _NUDGE))
        return self._oracle.run(arguments.bind(self._subject.module, inputs))

    def own(self, nudges: float) -> Outputs:
        """What it gives in its own dtype, whose rounding may do more."""

        def nudged(path: str, leaf: torch.Tensor) -> torch.Tensor:
            step = nudges * max(_NUDGE, _PLACES * torch.finfo(leaf.dtype).eps)
            return self._nudged(path, leaf, step).to(leaf.dtype)

        module = self._subject.module
        return answer(module, arguments.bind(module, self._inputs(nudged)))

    def moves(self, given: Outputs, truth: Outputs | None) -> list[Move]:
        """By output."""
        try:
            pairs = [(self.own(nudges), given) for nudges in _OWN_DRAWS]
            if truth is not None:
                pairs += [(given, truth), *((self.exact(nudges), truth) for nudges in _EXACT_DRAWS)]
        except Unoracled:
            return []
        if any(len(one.values) != len(two.values) for one, two in pairs):
            return []
        found = [_move([(one.values[at], two.values[at]) for one, two in pairs]) for at in range(len(given.values))]
        return found if truth is not None else [replace(one, sway=None) for one in found]

    def _inputs(self, nudged: Callable[[str, torch.Tensor], torch.Tensor]) -> NamedInputs:
        def change(path: str, leaf: Any) -> Any:
            return nudged(path, leaf) if path in self._case.tied else leaf

        return arguments.rebuild(self._case.inputs, change)

    def _nudged(self, path: str, leaf: torch.Tensor, step: float) -> torch.Tensor:
        """In float64, by a step relative to its size; what would leave its declared range turns back at its end."""
        exact = leaf.double()
        step *= float(exact.abs().max()) or self._usual(path)
        drawn = torch.randn(exact.shape, generator=self._drawn, dtype=torch.float64).to(exact.device)
        moved, item = exact + step * drawn, self._declared.get(path)
        low, high = (item.low, item.high) if item is not None else (None, None)
        if low is not None:
            moved = torch.where((moved < low) & (exact >= low), 2 * low - moved, moved)
        if high is not None:
            moved = torch.where((moved > high) & (exact <= high), 2 * high - moved, moved)
        return moved

    def _usual(self, path: str) -> float:
        """How large the values of an input are that is all zeros here."""
        item = self._declared.get(path)
        ends = [abs(end) for end in (item.low, item.high) if end is not None] if item is not None else []
        return max(ends, default=0.0) or _largest([self._example.get(path)]) or 1.0


def _move(pairs: Sequence[tuple[Any, Any]]) -> Move:
    """Of one output, from its values at the case and beside it."""
    for one, two in pairs:
        if not isinstance(one, torch.Tensor) or not isinstance(two, torch.Tensor) or one.shape != two.shape:
            return Move()
        if not all(each.dtype.is_floating_point or each.is_complex() for each in (one, two)):
            return Move()
    wide = [(_real(one), _real(two)) for one, two in pairs]
    return Move(
        sway=max(_largest([one - two]) for one, two in wide), firm=all(_same_places(one, two) for one, two in wide)
    )


def _real(value: torch.Tensor) -> torch.Tensor:
    return (torch.view_as_real(value.resolve_conj()) if value.is_complex() else value).detach().double()


def _holds(value: Any, moved: Any, usual: Any) -> bool:
    if isinstance(value, (list, tuple)):
        same = isinstance(moved, (list, tuple)) and len(moved) == len(value)
        return same and all(_holds(one, two, None) for one, two in zip(value, moved, strict=True))
    if not isinstance(value, torch.Tensor) or not isinstance(moved, torch.Tensor):
        return type(value) is type(moved)
    if value.shape != moved.shape or not (value.dtype.is_floating_point or value.dtype.is_complex):
        return value.shape == moved.shape and torch.equal(value, moved)
    if not _same_places(value, moved):
        return False
    limit = _MOST * max(_largest([value, usual]), 1e-30)
    return _largest([value - moved]) <= limit


def _same_places(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Whether NaN and infinity stand at the same places."""
    here, there = (torch.where(torch.isfinite(each), 0, each) for each in (one, two))
    return torch.allclose(here, there, rtol=0, atol=0, equal_nan=True)


def _largest(tensors: Sequence[Any]) -> float:
    """The largest finite magnitude."""
    found = 0.0
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and tensor.numel():
            sizes = tensor.detach().abs().double()
            found = max(found, float(torch.nan_to_num(sizes, nan=0.0, posinf=0.0).max()))
    return found if math.isfinite(found) else 0.0
