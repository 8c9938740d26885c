"""The sizes that a contract allows: its axes made ready to be checked, solved and shown. Plain numbers only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from onnx_ci.records.expression import UNKNOWN, Expression, ExpressionError, parse

if TYPE_CHECKING:
    from onnx_ci.records.contract import DimContract

_POLYNOMIAL = re.compile(r"[\w\s()*+-]*")
_MOST_TRIED = 4096

# Named tuples, not dataclasses: a service imports this, and making a dataclass takes a millisecond each.


class Range(NamedTuple):
    """The sizes of a dim, both ends included; `max` None is without end."""

    min: int
    max: int | None
    multiple_of: int = 1


ANY = Range(0, None)
"""Of a name in the file's shapes to which the contract gives no range: its sizes must agree, no more."""


class Fixed(NamedTuple):
    """One size."""

    size: int


class Named(NamedTuple):
    """A dim: the same size wherever its name stands."""

    name: str
    dim: Range


class Derived(NamedTuple):
    """An expression of dims."""

    expression: Expression


class Free(NamedTuple):
    """Nothing is known of it: a size that only the data tell, or one that the grammar cannot say."""

    text: str


Axis = Fixed | Named | Derived | Free


def axis_of(size: int | str, dims: Mapping[str, DimContract]) -> Axis:
    """Reads one axis of a contract's shape."""
    if isinstance(size, int):
        return Fixed(size)
    if size.isidentifier():
        return Named(size, range_of(size, dims))
    try:
        expression = parse(size)
        return Derived(expression) if expression.names else Fixed(expression({}))
    except ExpressionError:
        return Free(size or UNKNOWN)


def range_of(name: str, dims: Mapping[str, DimContract]) -> Range:
    """The range that a contract gives a dim."""
    dim = dims.get(name)
    return ANY if dim is None else Range(dim.min, dim.max, dim.multiple_of)


def fits(size: int, dim: Range) -> bool:
    """Whether a size lies inside the range and is a multiple."""
    return dim.min <= size and (dim.max is None or size <= dim.max) and size % dim.multiple_of == 0


def solve(
    expression: Expression, known: Mapping[str, int], unknown: str, size: int, dim: Range
) -> int | Literal["none", "many"]:
    """The size of the one dim without which an expression has no value, where the whole has this size.

    A sum of products that is linear in it is solved whatever the range; anything else is tried over the range.

    Returns:
        The size, "none" where no whole number will do, or "many" where several do or nobody can tell.
    """
    line = _line(expression, known, unknown)
    if line is not None:
        start, slope = line
        quotient, rest = divmod(size - start, slope)
        return quotient if rest == 0 and quotient >= 0 else "none"
    if dim.max is None or dim.max - dim.min > _MOST_TRIED:
        return "many"
    tried = [value for value in range(dim.min, dim.max + 1) if fits(value, dim)]
    found = [value for value in tried if value_of(expression, {**known, unknown: value}) == size]
    return found[0] if len(found) == 1 else "many" if found else "none"


def _line(expression: Expression, known: Mapping[str, int], unknown: str) -> tuple[int, int] | None:
    """Value at zero and slope, where an expression is a straight line of one dim that is not level."""
    # A polynomial has at most the degree of how often the name stands in it, and four points fix the third degree.
    if not _POLYNOMIAL.fullmatch(expression.text) or len(re.findall(rf"\b{unknown}\b", expression.text)) > 3:
        return None
    at = [expression({**known, unknown: value}) for value in range(4)]
    slope = at[1] - at[0]
    straight = all(value == at[0] + slope * where for where, value in enumerate(at))
    return (at[0], slope) if straight and slope else None


def value_of(expression: Expression, sizes: Mapping[str, int]) -> int | None:
    """The size that an expression has at these sizes; None where it has none."""
    try:
        return expression(sizes)
    except ExpressionError:
        return None


def allowed(dim: Range) -> str:
    """The sizes of a dim, for a sentence."""
    step = f"multiples of {dim.multiple_of} " if dim.multiple_of > 1 else ""
    if dim.max is None:
        return f"{step}from {dim.min} up"
    if dim.min == dim.max:
        return f"{dim.min} only"
    return f"{step}from {dim.min} to {dim.max}" if step else f"{dim.min} to {dim.max}"


def nearest(size: int, dim: Range) -> list[int]:
    """The allowed sizes below and above one that is not allowed."""
    step = dim.multiple_of
    least = -(-dim.min // step) * step
    most = None if dim.max is None else dim.max // step * step
    if most is not None and most < least:
        return []
    below = size // step * step if most is None else min(size // step * step, most)
    above = max(-(-size // step) * step, least)
    return [near for near in dict.fromkeys([below, above]) if fits(near, dim)]


def shown(axis: Axis) -> str:
    """An axis for a list: ``3``, ``batch 1..8``, ``height 32..512 step 8``, ``2*half``."""
    if isinstance(axis, Fixed):
        return str(axis.size)
    if isinstance(axis, Derived):
        return axis.expression.text
    if isinstance(axis, Free):
        return axis.text
    if axis.dim.max == axis.dim.min:
        return f"{axis.name} {axis.dim.min}"
    if axis.dim == ANY:
        return axis.name
    step = f" step {axis.dim.multiple_of}" if axis.dim.multiple_of > 1 else ""
    return f"{axis.name} {axis.dim.min}..{'' if axis.dim.max is None else axis.dim.max}{step}"
