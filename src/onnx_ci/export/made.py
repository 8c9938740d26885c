"""Which float constants of a file the exporter made, and so rounded: those that are not the module's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Array = npt.NDArray[Any]
_FEW = 16
"""Elements that are looked at before two whole tensors are compared."""


class Own:
    """The numbers that a module holds: parameters, buffers, and tensors and arrays that hang on it."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._by_size: dict[int, list[Array]] = {}
        for array in _held(module):
            self._by_size.setdefault(array.size, []).append(array)

    def holds(self, constant: Array) -> bool:
        """Whether a constant is one of them, or its transpose, or made of nothing but their elements (reordered gates).

        The elements of one number say nothing: any number is somewhere among millions.
        """
        same = self._by_size.get(constant.size, [])
        if any(_equal(constant, held) or _equal(constant, held.T) for held in same):
            return True
        return constant.size > 1 and self._has_elements(constant.reshape(-1))

    def _has_elements(self, wanted: Array) -> bool:
        """A few elements first: those of a folded constant are nowhere, and that is seen in one pass."""
        few = wanted[:: max(1, wanted.size // _FEW)]
        held = [array for arrays in self._by_size.values() for array in arrays if array.size > 1]
        if not all(any(bool((array == value).any()) for array in held) for value in few[:2]):
            return False
        near = [array.reshape(-1) for array in held if bool(np.isin(few, array).any())]
        return bool(near) and bool(np.isin(wanted, np.concatenate(near)).all())


def names(constants: Iterable[tuple[str, Array]], own: Own) -> list[str]:
    """The names of the constants that were rounded on the way: not the module's own, and no whole numbers."""
    return [name for name, values in constants if values.size and not _whole(values) and not own.holds(values)]


def _whole(values: Array) -> bool:
    return bool((values == np.rint(values)).all())


def _held(module: torch.nn.Module) -> Iterator[Array]:
    seen: set[int] = set()
    for part in module.modules():
        for value in _plain(vars(part).values()):
            if id(value) in seen or not isinstance(value, (torch.Tensor, np.ndarray)):
                continue
            seen.add(id(value))
            array = _array(value)
            if array is not None and array.size:
                yield array


def _plain(values: Iterable[Any]) -> Iterator[Any]:
    """Attributes, and what lists and dicts among them hold: parameters and buffers are such dicts."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from value
        elif isinstance(value, dict):
            yield from value.values()
        else:
            yield value


def _array(value: torch.Tensor | Array) -> Array | None:
    """As floats that numpy can compare; None for a layout without plain elements, and for what is not floating."""
    if isinstance(value, np.ndarray):
        return value if value.dtype.kind == "f" else None
    if not value.dtype.is_floating_point:
        return None
    try:
        plain = value.detach().to("cpu")
        return (plain if plain.dtype in (torch.float32, torch.float64) else plain.float()).numpy()
    except (RuntimeError, TypeError, NotImplementedError):
        return None


def _equal(one: Array, other: Array) -> bool:
    """Whether the elements are the same in their order, whatever the shape."""
    few = slice(0, _FEW)
    if not np.array_equal(one.reshape(-1)[few], other.flat[few]):
        return False
    return bool(np.array_equal(one.reshape(-1), other.reshape(-1)))
