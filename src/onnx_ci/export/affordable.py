"""Which cases a model can afford, by what its example takes: memory, work and floating-point operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx_ci.export.axes import Shapes, Sizes, elements, names_in, size_of

Fits = Callable[[Mapping[str, int]], bool]
"""Whether a case of these sizes is within the budget."""

MOST_BYTES = 256 << 20
"""Of all inputs of one case together."""
MOST_GROWTH = 16
"""How many times the example's work a case may be."""
FREE_WORK = 1 << 24
"""Work that any case may be, however small the example is."""
FREE_FLOPS = 6e10
"""Floating-point operations that any case may take: a few seconds in float64 on one core."""
MOST_FLOPS_GROWTH = 4
"""How many times the example's operations a case may take beyond that."""


def budget(base: Sizes, shapes: Shapes, widths: Mapping[str, int], flops: float = 0.0, *, share: float = 1.0) -> Fits:
    """What a case may cost, by the example's own cost.

    Operations are taken to grow with the elements of the inputs, as they do where weights outweigh all else; `flops` 0
    stands for not known, and `share` is which part of the most operations is meant.
    """
    most = max(MOST_GROWTH * _work(base, shapes), FREE_WORK)
    most_flops = share * max(MOST_FLOPS_GROWTH * flops, FREE_FLOPS)
    one = flops / max(sum(elements(axes, base) for axes in shapes.values()), 1)

    def fits(dims: Mapping[str, int]) -> bool:
        size = sum(widths[path] * elements(axes, dims) for path, axes in shapes.items())
        taken = one * sum(elements(axes, dims) for axes in shapes.values())
        return size <= MOST_BYTES and _work(dims, shapes) <= most and taken <= most_flops

    return fits


def _work(dims: Mapping[str, int], shapes: Shapes) -> int:
    """What a forward costs, roughly: attention is quadratic in a sequence, convolution linear in a picture."""
    total = 0
    for axes in shapes.values():
        moving = [size_of(axis, dims) for axis in axes if names_in(axis)]
        factor = max(moving, default=1) if len(axes) <= 3 else 4
        total += elements(axes, dims) * max(factor, 1)
    return total
