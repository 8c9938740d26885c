"""A grammar of size arithmetic as models write it: Python expressions of the sizes ``n`` and ``m`` of two axes."""

from __future__ import annotations

import numpy as np

Draw = np.random.Generator

_UNARY = (
    "{e} // {k}",
    "{e} // {k}",
    "({e} + {k} - 1) // {k}",
    "-(-{e} // {k})",
    "({e} + {k} - 1) // {k} * {k}",
    "{e} - {e} % {k}",
    "{e} % {k}",
    "{e} - {k}",
    "{e} + {k}",
    "{e} * {k}",
    "{e} * {e} // {c}",
    "{e} >> 1",
    "divmod({e}, {k})[0]",
    "int({e} * {f})",
    "int({e} / {k})",
    "int({e} ** 0.5)",
    "round({e} * {f})",
    "round({e} / {k})",
    "math.floor({e} * {f})",
    "math.floor({e} / {k})",
    "math.ceil({e} / {k})",
    "math.ceil({e} * {f})",
    "math.trunc({e} * {f})",
    "min({e}, {c})",
    "max({e}, {c})",
    "max(1, {e} - {k})",
    "abs({e} - {c})",
    "({e} if {e} > {c} else {k})",
    "int(math.log2({e}))",
    "int(np.ceil({e} / {k}))",
)
_LEAVES = ("n",) * 12 + ("m", "min(n, m)", "(n + m)", "(n * m)")
_CONDITIONS = (
    "{e} > {c}",
    "{e} > {c}",
    "{e} < {c}",
    "{e} >= {c}",
    "{e} == {c}",
    "{e} % {k} == 0",
    "{e} % 2",
    "{e} // {k} > {s}",
    "{e} * {e} > {c} * {c}",
    "{k} < {e} < {c}",
    "{e} / {k} > {s}.5",
    "n > m",
    "n * m > {c} * {s}",
)


def size(draw: Draw, depth: int = 2) -> str:
    """An expression whose value is a size, or nearly one: it may be 0 or negative at some sizes."""
    form = _pick(draw, _UNARY)
    if depth > 1 and draw.random() < 0.4:
        return _filled(draw, form, f"({size(draw, depth - 1)})")
    return _filled(draw, form, _pick(draw, _LEAVES))


def condition(draw: Draw) -> str:
    """An expression that a branch hangs on."""
    return _filled(draw, _pick(draw, _CONDITIONS), "n")


def small(draw: Draw, low: int = 2, high: int = 5) -> int:
    """A number, both ends among them."""
    return int(draw.integers(low, high + 1))


def _filled(draw: Draw, form: str, inner: str) -> str:
    fraction = _pick(draw, ("0.25", "0.3", "0.5", "0.7", "0.75", "1.5", "2 / 3"))
    fraction = f"({fraction})" if " " in fraction else fraction
    return form.format(e=inner, k=small(draw), c=small(draw, 4, 20), s=small(draw, 1, 4), f=fraction)


def _pick(draw: Draw, among: tuple[str, ...]) -> str:
    return among[int(draw.integers(len(among)))]
