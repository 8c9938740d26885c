"""Sizes at which a number computed of them is another whole one in float32: ``ceil((n + 2) * 0.3)`` at n = 48.

Python computes with floats of 64 bits, the file with 32; a product that is whole in the one lies above it in the other,
and ceil, floor or round take them apart. A pattern of jumps shows nothing of it, so the arithmetic that was traced is
done both ways, at every size.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from onnx_ci.export.affordable import Fits
from onnx_ci.export.axes import Sizes
from onnx_ci.export.sizes import Plan, Range

_MOST_SIZES = 4096
_MOST_CASES = 2
_WHOLE: dict[Any, Callable[[Any], Any]] = {
    math.ceil: np.ceil,
    math.floor: np.floor,
    math.trunc: np.trunc,
    builtins.round: np.rint,
    builtins.int: np.trunc,
    torch.sym_int: np.trunc,
}
_ARITHMETIC: dict[Any, Callable[..., Any]] = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.truediv: np.true_divide,
    operator.floordiv: np.floor_divide,
    operator.mod: np.mod,
    operator.neg: np.negative,
    torch.sym_max: np.maximum,
    torch.sym_min: np.minimum,
}
Both = tuple[Any, Any]
"""A number at each size, as Python has it and as the file has it: integers, or floats of 64 and of 32 bits."""


def plans(
    graph: torch.fx.Graph,
    symbols: Mapping[Any, str],
    ranges: Mapping[str, Range],
    base: Sizes,
    fits: Fits,
    known: Sequence[Mapping[str, int]],
) -> list[Plan]:
    """The sizes nearest to the example of each dim, two at most, that no case has.

    Args:
        graph: Of the captured program.
        symbols: The dim of each symbol in it.
        ranges: The dims that may vary.
        base: The example's size of every dim.
        fits: Whether a case of these sizes can be afforded.
        known: Sizes that a case exists for.
    """
    made: list[Plan] = []
    for name, one in ranges.items():
        found = [size for size in _suspects(graph, symbols, base, name, one) if fits(base | {name: size})]
        fresh = [size for size in found if base | {name: size} not in known]
        for size in sorted(fresh, key=lambda size: abs(size - one.example))[:_MOST_CASES]:
            why = f"{name} {size}, where a number computed of it is another whole one in float32"
            made.append(Plan(f"{name}-rounded-{size}", why, base | {name: size}))
    return made


def _suspects(graph: torch.fx.Graph, symbols: Mapping[Any, str], base: Sizes, name: str, one: Range) -> list[int]:
    sizes = np.arange(one.min, one.top + 1, one.step)[:_MOST_SIZES]
    values: dict[torch.fx.Node, Both] = {}
    apart = np.zeros(len(sizes), bool)
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            both = _value(node, values, symbols, base | {name: sizes})
            if both is not None:
                values[node] = both
                if node.target in _WHOLE:
                    apart |= np.broadcast_to(both[0] != both[1], apart.shape)
    return [int(size) for size in sizes[apart]]


def _value(
    node: torch.fx.Node, values: Mapping[torch.fx.Node, Both], symbols: Mapping[Any, str], at: Mapping[str, Any]
) -> Both | None:
    """None for what is no number, or hangs on one that is not known."""
    traced: Any = getattr(node.meta.get("val"), "node", None)
    if node.op != "call_function" or traced is None:
        return None
    if node.target is torch.ops.aten.sym_size.int:
        dim = symbols.get(traced.expr)
        return (at[dim], at[dim]) if dim is not None and dim in at else None
    given = [values.get(arg) if isinstance(arg, torch.fx.Node) else arg for arg in node.args if arg is not None]
    if any(arg is None or not isinstance(arg, (tuple, int, float)) for arg in given):
        return None
    exact, narrow = ([arg[side] if isinstance(arg, tuple) else arg for arg in given] for side in (0, 1))
    return _computed(node.target, exact, narrow)


def _computed(target: Any, exact: Sequence[Any], narrow: Sequence[Any]) -> Both | None:
    if target is torch.sym_float:
        return np.asarray(exact[0], np.float64), np.asarray(narrow[0], np.float32)
    if target in _WHOLE:
        whole = _WHOLE[target]
        return whole(exact[0]).astype(np.int64), whole(narrow[0]).astype(np.int64)
    if target not in _ARITHMETIC:
        return None
    floats = target is operator.truediv or any(np.asarray(arg).dtype.kind == "f" for arg in exact)
    if not floats:
        done = _ARITHMETIC[target](*exact)
        return done, done
    function = _ARITHMETIC[target]
    return (
        function(*(np.asarray(arg, np.float64) for arg in exact)),
        function(*(np.asarray(arg, np.float32) for arg in narrow)),
    )
