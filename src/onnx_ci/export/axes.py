"""The sizes of axes from the sizes of dims, and back: an axis is a size, a dim, or an expression of dims."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from onnx_ci.records import expression

Sizes = dict[str, int]
Shapes = Mapping[str, Sequence[int | str]]
"""The axes of each tensor, by path."""


def names_in(axis: str | int) -> frozenset[str]:
    """The dims that an axis depends on; none for a size."""
    return frozenset() if isinstance(axis, int) else expression.parse(axis).names


def size_of(axis: str | int, sizes: Mapping[str, int]) -> int:
    """The size of an axis when dims have these sizes."""
    return axis if isinstance(axis, int) else expression.parse(axis)(sizes)


def solve(axis: str, size: int, known: Mapping[str, int]) -> tuple[str, int] | None:
    """The dim of an axis and its size, when the axis has this size; None where no whole number gives it.

    Args:
        axis: Linear and rising in each of its dims: ``2*h + 4``, ``past + new``.
        size: Of the axis.
        known: The sizes of other dims; of several that are not known, none can be told.
    """
    names = sorted(names_in(axis))
    unknown = [name for name in names if name not in known] or names[:1]
    if len(unknown) > 1:
        return None
    (name,) = unknown
    start = size_of(axis, {**known, name: 0})
    slope = size_of(axis, {**known, name: 1}) - start
    value, rest = divmod(size - start, slope)
    return (name, value) if rest == 0 and value >= 0 else None


def elements(axes: Sequence[int | str], dims: Mapping[str, int]) -> int:
    """How many elements a tensor has when dims have these sizes."""
    return math.prod(max(size_of(axis, dims), 0) for axis in axes)
