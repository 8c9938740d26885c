"""What to say of names, ranks and sizes that a contract does not allow: what came, what is allowed, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onnx_ci.runtime import sizes
from onnx_ci.runtime.problems import Problem
from onnx_ci.runtime.sizes import Axis, Fixed, Named, Range

_SHOWN = 60


def no_mapping(given: object, names: Sequence[str]) -> Problem:
    """Of inputs that do not come by name."""
    wanted = ", ".join(f'"{name}": …' for name in names)
    message = f"the inputs are of type {type(given).__name__}; arrays by name are needed: {{{wanted}}}"
    return Problem(input="", axis=None, message=message)


def wrong_names(names: Sequence[str], given: Iterable[object], frozen: Mapping[str, Any]) -> list[Problem]:
    """Of inputs that are missing, and of those that the file does not take."""
    given = list(given)
    missing = [name for name in names if name not in given]
    found = [Problem(input=name, axis=None, message=_missing(name, given, names)) for name in missing]
    for name in given:
        if name not in names:
            found.append(
                Problem(input=f"{name}"[:_SHOWN], axis=None, message=_unexpected(name, missing, names, frozen))
            )
    return found


def _missing(name: str, given: Sequence[object], names: Sequence[str]) -> str:
    others = ", ".join(f"{other}"[:_SHOWN] for other in given) or "none"
    return f"missing; given are {others}, the file takes {', '.join(names)}"


def _unexpected(name: object, missing: Sequence[str], names: Sequence[str], frozen: Mapping[str, Any]) -> str:
    if not isinstance(name, str):
        return f"a name of type {type(name).__name__}; names are text"
    close = _closest(name, missing)
    if close:
        return f"no such input; did you mean {close}?"
    if name in frozen:
        return (
            f"no input of the file: it became a constant at export ({frozen[name]!r:.{_SHOWN}}). "
            "Leave it out, or export the model with the value that is needed"
        )
    return f"no such input; the file takes {', '.join(names) or 'none'}: leave it out"


def _closest(word: str, known: Sequence[str]) -> str:
    import difflib  # for the message of an error only: no service should wait for it

    by_lower = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return by_lower[found[0]] if found else ""


def wrong_rank(name: str, shape: Sequence[int], axes: Sequence[Axis]) -> str:
    """Of an array with too many or too few axes."""
    wanted = ", ".join(map(sizes.shown, axes))
    message = f"{_axes(len(shape))} {list(shape)}, allowed is {_axes(len(axes))} [{wanted}]"
    if len(shape) == len(axes) - 1 and _fit((1, *shape), axes):
        return f"{message}; if it is one item of a batch: {name}[None]"
    if len(shape) == len(axes) + 1 and shape[0] == 1 and _fit(shape[1:], axes):
        return f"{message}; the first axis holds one item: {name}[0]"
    return message


def _axes(count: int) -> str:
    return "no axis" if count == 0 else "1 axis" if count == 1 else f"{count} axes"


def wrong_fixed(name: str, place: int, shape: Sequence[int], axes: Sequence[Axis]) -> str:
    """Of an axis whose size is fixed in the file."""
    wanted = axes[place]
    assert isinstance(wanted, Fixed)
    message = f"{shape[place]}, allowed is {wanted.size} only, which is fixed in the file"
    order = _other_order(shape, axes)
    if order:
        return (
            f"{message}; the axes {list(shape)} look like another order: {name}.transpose({', '.join(map(str, order))})"
        )
    return message


def _other_order(shape: Sequence[int], axes: Sequence[Axis]) -> tuple[int, ...] | None:
    """The one way in which channels-last became channels-first, or back, if that makes all sizes fit."""
    if len(shape) not in (3, 4, 5):
        return None
    start = len(shape) - 3 if len(shape) < 5 else 1
    inner = list(range(start, len(shape)))
    ways = [(*range(start), inner[-1], *inner[:-1]), (*range(start), *inner[1:], inner[0])]
    found = [way for way in ways if _fit([shape[at] for at in way], axes)]
    return found[0] if len(found) == 1 else None


def _fit(shape: Sequence[int], axes: Sequence[Axis]) -> bool:
    """Whether fixed sizes and ranges hold; what is shared and what is computed is left out."""
    fixed = all(size == axis.size for size, axis in zip(shape, axes, strict=True) if isinstance(axis, Fixed))
    return fixed and all(
        sizes.fits(size, axis.dim) for size, axis in zip(shape, axes, strict=True) if isinstance(axis, Named)
    )


def wrong_range(axis: Named, size: int, came: str = "") -> str:
    """Of a size outside its range; `came` says what came, where the size itself was computed from it."""
    dim = axis.dim
    message = f"{came or size}, allowed {'is' if dim.min == dim.max else 'are'} {sizes.allowed(dim)}"
    if size == 0:
        return f"{message}; there is nothing to compute: leave the call out"
    if dim.min <= size and (dim.max is None or size <= dim.max):
        near = sizes.nearest(size, dim)
        return f"{message}; pad or crop to {' or '.join(map(str, near))}" if near else message
    if dim.min == dim.max:
        return message
    if dim.max is not None and size > dim.max:
        return f"{message}; split, crop or resize it, or export the model with a larger dims.{axis.name}.max"
    return f"{message}; pad or resize it, or export the model with a smaller dims.{axis.name}.min"


def not_shared(size: int, other: int, name: str, place: int) -> str:
    """Of two axes that bear one name and differ."""
    return f"{size}, but {name}, axis {place} has {other}; both are one dim and must be equal"


def not_computed(size: int, wanted: int, text: str, known: Mapping[str, int]) -> str:
    """Of an axis that another one determines."""
    given = ", ".join(f"{name} = {value}" for name, value in sorted(known.items()))
    return f"{size}, but {text} is {wanted} with {given}"


def not_solved(size: int, text: str, unknown: str, dim: Range) -> str:
    """Of an axis whose size is no value of its expression."""
    return f"{size} is {text} for no {unknown} that is allowed ({sizes.allowed(dim)})"
