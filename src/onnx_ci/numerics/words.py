"""How numbers, places and cases read in messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def sci(value: float) -> str:
    """Two digits: "3.1e-4", "0.12", "0"."""
    if value == 0:
        return "0"
    text = f"{value:.2g}" if 1e-3 <= abs(value) < 1e4 else f"{value:.1e}"
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if e else text


def case_text(name: str, dims: Mapping[str, int]) -> str:
    """A case with its dims: "case 'max-height' (batch=2, height=512)"."""
    sizes = ", ".join(f"{dim}={size}" for dim, size in dims.items())
    return f"case '{name}' ({sizes})" if sizes else f"case '{name}'"


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 case", "2 cases"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some(names: Sequence[str], most: int = 5, between: str = ", ") -> str:
    """The first few of a list: "a, b and 3 more"."""
    shown = between.join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def at_text(index: Sequence[int]) -> str:
    """An index: "[0, 3]"; empty for a scalar."""
    return f" at [{', '.join(map(str, index))}]" if index else ""
