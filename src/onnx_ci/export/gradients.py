"""Whether the adapted module's gradients are the original's, and, where they are not, whose are the derivative.

Where two functions agree around a point, their gradients agree too, unless one of the two modules keeps gradients back
(detach, no_grad, a backward of its own) or the point is one without a derivative: a tie in max pooling, zero under relu
or abs. So a difference alone is no fault. Finite differences of the original, along the direction in which the two
gradients differ, tell: it fails where the original's gradient is the derivative and the adapted one's is not, and
warns where it is the other way around, or where there is no derivative at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from onnx_ci.export import arguments
from onnx_ci.export.gaps import Gap, gap, inexact
from onnx_ci.export.oracle import Unoracled, lift
from onnx_ci.export.shared import Pair, tensors
from onnx_ci.export.side import Gradient, Gradients, Side, inner, slope
from onnx_ci.export.types import NamedInputs, Outputs
from onnx_ci.numerics.words import some
from onnx_ci.records.result import Status

RELATIVE = 1e-9
"""Of the gradient's largest magnitude. Other orders of the same sums are 1e-14 to 1e-12 apart in float64."""
_FLOOR = 1e-12
"""Of the largest magnitude among all gradients: some are zero but for rounding, as that of attention's key bias is."""
_RESOLVED = 1e-4
"""The relative difference from which on finite differences can tell whose gradient is right."""
_STEP = 1e-5
"""Of the largest magnitude of what is moved: with float64, right to some eight digits on smooth functions."""
_CLEAR = 0.2
ROUNDING = 4.0
"""How many times what the original rounds in its own dtype a stored constant may bring about."""

Named = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one case showed of one aspect: the worst tensor, and why it is judged so."""

    status: Status
    subject: str
    gap: Gap | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """Where gradients are taken.

    Attributes:
        outputs: The original's in float64.
        weights: The scalar is the sum of each output of the original times these.
    """

    inputs: NamedInputs
    outputs: Outputs
    weights: dict[int, torch.Tensor]


def weights(
    outputs: Outputs, others: Outputs, pairs: Sequence[tuple[int, int]], seed: int
) -> list[torch.Tensor | None]:
    """Random weights for each pair of outputs, 0 where either is not finite; None where there is no derivative."""
    generator = torch.Generator().manual_seed(seed)
    made: list[torch.Tensor | None] = []
    for at, also in pairs:
        one, other = outputs.values[at], others.values[also]
        tensors = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
        if not tensors or one.shape != other.shape or one.dtype != other.dtype or not inexact(one):
            made.append(None)
            continue
        drawn = torch.randn(one.shape, generator=generator, dtype=one.dtype)
        made.append(torch.where(torch.isfinite(one) & torch.isfinite(other), drawn, torch.zeros_like(drawn)))
    return made


def of_inputs(original: Side, point: Point, first: Gradients, second: Gradients, *, stored: bool) -> Verdict:
    """Judges the gradients by input; `stored` says whether one module has constants in a lower precision."""

    def evaluate(directions: Named, size: float) -> float:
        def move(path: str, value: Any) -> Any:
            return lift(value) + size * directions[path] if path in directions else value

        return _change(original, point, arguments.rebuild(point.inputs, move))

    def own() -> Mapping[str, Gradient]:
        return original.own_gradients(point.inputs, point.weights).inputs

    held = {path: lift(value) for path, value in arguments.paths(point.inputs).items() if path in first.inputs}
    return _judge(first.inputs, second.inputs, held, evaluate, own if stored else None)


def of_parameters(
    original: Side,
    adapted: Side,
    point: Point,
    first: Gradients,
    second: Gradients,
    shared: Sequence[list[Pair]],
    *,
    stored: bool,
) -> Verdict:
    """Judges the gradients by shared parameter; tied ones by their sum."""
    assert original.oracle is not None
    assert adapted.oracle is not None
    held, also = tensors(original.oracle.module), tensors(adapted.oracle.module)
    names = {str(group[0]): group for group in shared}
    mine = {name: _sum(held, first.parameters, [pair.original for pair in group]) for name, group in names.items()}
    theirs = {name: _sum(also, second.parameters, [pair.adapted for pair in group]) for name, group in names.items()}

    def evaluate(directions: Named, size: float) -> float:
        distinct = {
            id(held[pair.original]): (pair.original, directions[name])
            for name, group in names.items()
            if name in directions
            for pair in group
        }
        with original.moved(dict(distinct.values()), size):
            return _change(original, point, point.inputs)

    def own() -> Mapping[str, Gradient]:
        found = original.own_gradients(point.inputs, point.weights).parameters
        return (
            {name: _sum(held, found, [pair.original for pair in group]) for name, group in names.items()}
            if found
            else {}
        )

    values = {name: held[group[0].original].detach() for name, group in names.items()}
    return _judge(mine, theirs, values, evaluate, own if stored else None)


def _judge(
    first: Mapping[str, Gradient],
    second: Mapping[str, Gradient],
    held: Mapping[str, torch.Tensor],
    evaluate: Callable[[Named, float], float],
    own: Callable[[], Mapping[str, Gradient]] | None,
) -> Verdict:
    """`own` gives the original's gradients in its own dtype, where stored constants may explain a difference."""
    missing = [name for name, value in first.items() if _present(value) and second[name] is None]
    extra = [name for name, value in second.items() if _present(value) and first[name] is None]
    common = {name: (value, second[name]) for name, value in first.items() if value is not None}
    mine: Named = {name: value for name, (value, other) in common.items() if other is not None}
    theirs: Named = {name: other for name, (_, other) in common.items() if other is not None}
    if not mine:
        if missing or extra:
            return _cut(missing, extra)
        return Verdict("skip", "", None, "no gradient reaches any of them, in either module")
    top = max(float(torch.nan_to_num(value.abs()).max()) if value.numel() else 0.0 for value in mine.values())
    gaps = {name: gap(value, theirs[name], RELATIVE, _FLOOR * top) for name, value in mine.items()}
    worst = max(gaps, key=lambda name: gaps[name].rank)
    seen = gaps[worst]
    if seen.kind == "within":
        return _cut(missing, extra) if missing or extra else Verdict("pass", worst, seen)
    if seen.kind != "beyond":
        return Verdict("warn", worst, seen, "not finite in one of the two: there is no derivative to hold to")
    small = {name: max(one.limit, _RESOLVED * max(one.peak, _RESOLVED * top)) for name, one in gaps.items()}
    if own is not None:
        rounded = own()
        for name, value in mine.items():
            small[name] = max(small[name], _rounding(value, rounded.get(name)))
    if all(one.figure <= small[name] for name, one in gaps.items()):
        if own is not None:
            return Verdict("pass", worst, seen, "as tensors explain that one of the two stores in its own dtype")
        return Verdict("warn", worst, seen, "more than another order of the same operations explains")
    return _arbitrate(worst, seen, mine, theirs, held, evaluate)


def _arbitrate(
    worst: str,
    seen: Gap,
    mine: Named,
    theirs: Named,
    held: Mapping[str, torch.Tensor],
    evaluate: Callable[[Named, float], float],
) -> Verdict:
    """Asks the original's own finite differences, along the direction in which the gradients differ."""
    directions = {name: value - theirs[name] for name, value in mine.items()}
    sizes = {name: float(value.abs().max()) for name, value in directions.items() if value.numel()}
    first = max(sizes, key=sizes.__getitem__)
    directions = {name: value / sizes[first] for name, value in directions.items()}
    reach = float(held[first].abs().max())
    ours, other = inner(mine, directions), inner(theirs, directions)
    apart = abs(ours - other)
    try:
        right, left, error = slope(lambda size: evaluate(directions, size), _STEP * (reach or 1.0))
    except Unoracled as refused:
        return Verdict("warn", worst, seen, f"the original can't be run beside it to tell whose is right: {refused}")
    middle = (right + left) / 2
    if not abs(right - left) + error <= _CLEAR * apart:
        return Verdict("warn", worst, seen, "there is no derivative: the original has a tie, a kink or a jump there")
    told = f"by finite differences it is {middle:.4g} where they differ most, {ours:.4g} by the original's gradient"
    told += f" and {other:.4g} by the adapted one's"
    if abs(middle - ours) <= _CLEAR * apart:
        return Verdict("fail", worst, seen, told)
    if abs(middle - other) <= _CLEAR * apart:
        return Verdict("warn", worst, seen, f"{told}: the original's is no derivative of what it computes")
    return Verdict("warn", worst, seen, f"{told}: neither is the derivative of what the original computes")


def _change(original: Side, point: Point, inputs: NamedInputs) -> float:
    moved = original.exact(inputs)
    total = 0.0
    for at, weight in point.weights.items():
        if moved.values[at].shape != weight.shape:
            raise Unoracled("its outputs change their shape")
        change = torch.where(weight != 0, moved.values[at] - point.outputs.values[at], torch.zeros_like(weight))
        total += inner({"": change}, {"": weight})
    return total


def _cut(missing: Sequence[str], extra: Sequence[str]) -> Verdict:
    if missing:
        return Verdict("warn", missing[0], None, f"no gradient reaches {some(missing)} in the adapted module")
    return Verdict("warn", extra[0], None, f"no gradient reaches {some(extra)} in the original")


def _present(value: Gradient) -> bool:
    return value is not None and bool((value != 0).any())


def _rounding(exact: torch.Tensor, own: Gradient) -> float:
    """What the original's gradient in its own dtype is off, four times; 0 where that can't be told."""
    return ROUNDING * gap(exact, own, 0.0, 0.0).figure if own is not None and own.shape == exact.shape else 0.0


def _sum(held: Mapping[str, torch.Tensor], found: Mapping[str, Gradient], names: Sequence[str]) -> Gradient:
    """Over the distinct tensors among these names: a tied one counts once."""
    distinct = {id(held[name]): found[name] for name in names}
    present = [value for value in distinct.values() if value is not None]
    return torch.stack(present).sum(0) if present else None
