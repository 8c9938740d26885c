"""The forward half of a rewrite check: both modules on one input, output by output.

The limit is 1e-9 of an output's largest magnitude: in float64 the same mathematics in another order of operations is
1e-16 to 1e-12 apart, while another window, rounding or offset is seen in the first digits. What lies beyond is looked
into before it fails, because healthy rewrites do get there:

- a constant that was computed beforehand and is stored in float32 (a table of positions, weights of a resize) is 1e-8
  off; so a difference within what the original itself rounds in its own dtype passes where one of the two modules
  stores tensors that the other lacks, and warns where neither does;
- at a tie, a half or a threshold the last digit decides: if both modules agree once the input is moved a little, or
  differ only where the original's own sort, top-k or argmax has equals to choose from, it warns;
- where the original has no finite value and the adapted one has (a wholly masked row), it warns; never the other way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from onnx_ci.errors import OnnxCiError
from onnx_ci.export import arguments, order
from onnx_ci.export.gaps import Gap, as_tensor, gap, match, real
from onnx_ci.export.gradients import ROUNDING, Verdict
from onnx_ci.export.oracle import Unoracled, lift
from onnx_ci.export.side import Side
from onnx_ci.export.types import NamedInputs, Outputs, RunCase

RELATIVE = 1e-9
FLOOR = 1e-12
"""Of the largest input, at least 1: for outputs that are zero but for rounding."""
_COARSE = {torch.float16: 5e-2, torch.bfloat16: 2e-1}
_COARSE_DEFAULT = 1e-3
_MOVES = 2
_MOVED = 1e-3


@dataclass(slots=True)
class Ran:
    """What one input gave.

    Attributes:
        pairs: Which output of the original is which of the adapted module.
        coarse: Why it is compared in the modules' own dtype; empty in float64.
        misshapen: Outputs of another shape or kind, each with a sentence.
    """

    case: str
    size: str
    original: Outputs
    adapted: Outputs
    pairs: list[tuple[int, int]] = field(default_factory=list)
    coarse: str = ""
    misshapen: list[tuple[str, str]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def compared(self) -> bool:
        """Whether both modules took it."""
        return not self.original.error and not self.adapted.error


class Forward:
    """Runs both modules on inputs and compares their outputs."""

    def __init__(self, original: Side, adapted: Side, names: Sequence[str] | None, *, stored: bool) -> None:
        """`stored`: whether one module has tensors that the other lacks."""
        self._original, self._adapted, self._names, self._stored = original, adapted, names, stored
        self._pairs: list[tuple[int, int]] | None = None

    def run(self, case: RunCase) -> Ran:
        """One input through both."""
        original, adapted, coarse = self._both(case.inputs)
        size = ", ".join(f"{name} = {value}" for name, value in case.dims.items()) or "fixed sizes"
        ran = Ran(case.name, size, original, adapted, coarse=coarse)
        if not ran.compared:
            return ran
        if self._pairs is None:
            self._pairs = match(original, adapted)
        ran.pairs = [(one, other) for one, other in self._pairs if _has(original, one) and _has(adapted, other)]
        for pair in ran.pairs:
            self._compare(case, ran, pair)
        return ran

    def unmatched(self, ran: Ran) -> str:
        """The outputs that only one of the two gives, in words."""
        said = []
        for which, outputs, side in (("original", ran.original, 0), ("adapted module", ran.adapted, 1)):
            taken = {pair[side] for pair in ran.pairs}
            rest = [outputs.keys[at] or f"output {at}" for at in range(len(outputs.values)) if at not in taken]
            said += [f"{', '.join(rest)} of the {which}"] if rest else []
        return "; ".join(said)

    def _both(self, inputs: NamedInputs) -> tuple[Outputs, Outputs, str]:
        """In float64 where both can, else in their own dtype, with the reason; what refuses there has an error."""
        try:
            return self._original.exact(inputs), self._adapted.exact(inputs), ""
        except (Unoracled, OnnxCiError) as error:
            why = str(error)
        return self._original.own(inputs), self._adapted.own(inputs), why

    def _compare(self, case: RunCase, ran: Ran, pair: tuple[int, int]) -> None:
        name = self._name(ran, pair)
        values = ran.original.values[pair[0]], ran.adapted.values[pair[1]]
        one, other = as_tensor(values[0]), as_tensor(values[1])
        if one is None or other is None:
            if type(values[0]) is not type(values[1]) or values[0] != values[1]:
                ran.misshapen.append((name, f"is {values[1]!r:.40}, and {values[0]!r:.40} in the original"))
        elif one.shape != other.shape or one.is_complex() != other.is_complex():
            said = f"has shape {list(other.shape)}, and {list(one.shape)} in the original"
            ran.misshapen.append((name, said))
        else:
            seen = gap(one, other, *self._limits(case.inputs, one, ran.coarse))
            fine = seen.kind == "within"
            told = Verdict("pass", name, seen) if fine else self._explain(case.inputs, ran, pair, name, seen)
            ran.verdicts.append(told)

    def _explain(self, inputs: NamedInputs, ran: Ran, pair: tuple[int, int], name: str, seen: Gap) -> Verdict:
        if seen.kind == "gained":
            return Verdict("warn", name, seen, "the original has no finite value there, and the adapted module has")
        if seen.kind == "lost":
            return Verdict("fail", name, seen)
        rounding = self._rounding(inputs, ran, pair)
        if 0 < seen.figure <= rounding:
            if self._stored:
                why = "as tensors explain that one of the two stores in its own dtype"
                return Verdict("pass", name, replace(seen, limit=rounding), why)
            why = f"within what the original rounds ({rounding:.2g}), but more than another order of sums explains"
            return Verdict("warn", name, seen, why)
        if self._agree_beside(inputs, pair, max(rounding, seen.limit)):
            why = "both agree once the input is moved a little: a tie, a half or a threshold"
            return Verdict("warn", name, seen, why)
        if not ran.coarse and self._is_order(inputs, ran, pair, seen.limit):
            return Verdict("warn", name, seen, "values tie where they are put in order, and either order is right")
        return Verdict("fail", name, seen)

    def _is_order(self, inputs: NamedInputs, ran: Ran, pair: tuple[int, int], limit: float) -> bool:
        one, other = as_tensor(ran.original.values[pair[0]]), as_tensor(ran.adapted.values[pair[1]])
        assert one is not None
        assert other is not None
        apart = (real(one).double() - real(other).double()).abs() > limit
        try:
            return order.explains(self._original, inputs, pair[0], one, apart, limit)
        except Unoracled:
            return False

    def _rounding(self, inputs: NamedInputs, ran: Ran, pair: tuple[int, int]) -> float:
        """What the original in its own dtype is off, four times; 0 where that can't be told."""
        if ran.coarse:
            return 0.0
        own, exact = self._original.own(inputs), as_tensor(ran.original.values[pair[0]])
        value = None if own.error or not _has(own, pair[0]) else as_tensor(own.values[pair[0]])
        if value is None or exact is None or value.shape != exact.shape or value.is_complex() != exact.is_complex():
            return 0.0
        found = gap(exact, value, 0.0, 0.0)
        return ROUNDING * found.figure if found.peak else 0.0

    def _agree_beside(self, inputs: NamedInputs, pair: tuple[int, int], allowed: float) -> bool:
        """Whether the two agree in this output at inputs a little away, all of them."""
        if not any(_is_movable(leaf) for leaf in arguments.paths(inputs).values()):
            return False
        generator = torch.Generator().manual_seed(0)
        for _ in range(_MOVES):
            moved = arguments.rebuild(inputs, lambda _, leaf: _moved(leaf, generator))
            original, adapted, coarse = self._both(moved)
            if original.error or adapted.error or not (_has(original, pair[0]) and _has(adapted, pair[1])):
                return False
            one, other = as_tensor(original.values[pair[0]]), as_tensor(adapted.values[pair[1]])
            if one is None or other is None or one.shape != other.shape:
                return False
            relative, floor = self._limits(moved, one, coarse)
            if gap(one, other, relative, max(floor, allowed)).kind != "within":
                return False
        return True

    def _limits(self, inputs: NamedInputs, value: torch.Tensor, coarse: str) -> tuple[float, float]:
        leaves = [leaf for leaf in arguments.paths(inputs).values() if isinstance(leaf, torch.Tensor) and leaf.numel()]
        floats = [leaf for leaf in leaves if leaf.dtype.is_floating_point]
        unit = max([1.0, *(float(torch.nan_to_num(leaf.abs(), 0.0, 0.0, 0.0).max()) for leaf in floats)])
        if not coarse:
            return RELATIVE, FLOOR * unit
        relative = _COARSE.get(value.dtype, _COARSE_DEFAULT)
        return relative, relative * _COARSE_DEFAULT * unit

    def _name(self, ran: Ran, pair: tuple[int, int]) -> str:
        one, other = ran.original.keys[pair[0]], ran.adapted.keys[pair[1]]
        if not other and self._names and len(self._names) == len(ran.adapted.values):
            return self._names[pair[1]]
        return other or one or f"output {pair[1]}"


def _has(outputs: Outputs, at: int) -> bool:
    return at < len(outputs.values)


def _is_movable(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point and bool(leaf.numel())


def _moved(leaf: Any, generator: torch.Generator) -> Any:
    """A floating tensor a thousandth of its range away, at random and inside its range; all else as it is."""
    if not _is_movable(leaf):
        return leaf
    value = lift(leaf)
    drawn = torch.rand(value.shape, generator=generator, dtype=torch.float64)
    finite = value[torch.isfinite(value)]
    low, high = (float(finite.min()), float(finite.max())) if finite.numel() else (0.0, 0.0)
    step = value * drawn if low == high else (low - value) + drawn * (high - low)
    return torch.where(torch.isfinite(value), value + _MOVED * step, value).to(leaf.dtype)
