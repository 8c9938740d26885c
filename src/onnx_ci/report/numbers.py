"""Numbers as people read them: three significant digits that never break over two lines."""

from __future__ import annotations

import math

NBSP = "\u00a0"
MINUS = "\u2011"
"""A hyphen that does not break: browsers wrap `1e-05` at an ordinary one."""

NONE = "–"
"""What stands where there is nothing to show."""


def figure(value: float | None) -> str:
    """Writes an error or a limit: `0`, `0.0123`, `1.23e‑5`, `NaN`."""
    if value is None:
        return NONE
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if value == 0:
        return "0"
    if 1e-2 <= abs(value) < 1e4:
        text = _three_digits(value)
    else:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        text = f"{_without_zeros(mantissa)}e{int(exponent)}"
    return text.replace("-", MINUS)


def milliseconds(value: float | None) -> str:
    """Writes a duration with its unit, in µs, ms or s, whichever reads best."""
    if value is None or not math.isfinite(value) or value < 0:
        return NONE
    if value < 1:
        return f"{_three_digits(value * 1e3)}{NBSP}µs"
    if value < 1e4:
        return f"{_three_digits(value)}{NBSP}ms"
    return f"{_three_digits(value / 1e3)}{NBSP}s"


def size(found: int | None) -> str:
    """Writes bytes in MiB or GiB: `81.5 MiB`; a file from outside may hold any number."""
    if found is None or found < 0:
        return NONE
    unit, shown = (30, "GiB") if found >= 1 << 30 else (20, "MiB")
    return f"{_three_digits(min(found, 1 << 60) / (1 << unit))}{NBSP}{shown}"


def times(ratio: float) -> str:
    """Writes how many times: `1.54×`."""
    return f"{_three_digits(ratio)}×"


def count(number: int, noun: str, plural: str = "") -> str:
    """Writes a count with its noun: `1 model`, `3 models`."""
    return f"{number}{NBSP}{noun if number == 1 else plural or noun + 's'}"


def plain(text: str) -> str:
    """The same text for a terminal, whose fonts may lack these characters."""
    return text.replace(MINUS, "-").replace(NBSP, " ")


def _three_digits(value: float) -> str:
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def _without_zeros(mantissa: str) -> str:
    return mantissa.rstrip("0").rstrip(".")
