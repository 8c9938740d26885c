"""Which float constants of a file the exporter made, and so rounded: those that are not the module's own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from onnx_ci.export import folding
from onnx_ci.twin import Twin

Array = npt.NDArray[Any]
_TIMES = 8
"""How many times a constant's elements those may be that it is looked for among: a billion weights hold any float32."""
_FEW = 16
"""Elements that are looked at before two whole tensors are compared."""


class Own:
    """Numbers that were not rounded on the way into a file: those of a module, or some of them."""

    def __init__(self, arrays: Iterable[Array]) -> None:
        self._by_size: dict[int, list[Array]] = {}
        for array in arrays:
            self._by_size.setdefault(array.size, []).append(array)

    @classmethod
    def of(cls, module: torch.nn.Module) -> Own:
        """All that a module holds: parameters, buffers, and tensors and arrays that hang on it."""
        return cls(_held(module))

    def holds(self, constant: Array) -> bool:
        """Whether a constant is one of them, or its transpose, or made of nothing but their elements (reordered gates).

        The elements of one number say nothing: any number is somewhere among millions. Nor do those of half floats, of
        which there are a few thousand in all.
        """
        same = self._by_size.get(constant.size, [])
        if any(_equal(constant, held) or _equal(constant, held.T) for held in same):
            return True
        return constant.size > 1 and not _are_halves(constant) and self._has_elements(constant.reshape(-1))

    def _has_elements(self, wanted: Array) -> bool:
        """A few elements first: those of a folded constant are nowhere, and that is seen in one pass."""
        few = wanted[:: max(1, wanted.size // _FEW)]
        sizes = [size for size in self._by_size if 1 < size <= _TIMES * wanted.size]
        held = [array for size in sizes for array in self._by_size[size]]
        if not all(any(bool((array == value).any()) for array in held) for value in few[:2]):
            return False
        near = [array.reshape(-1) for array in held if bool(np.isin(few, array).any())]
        return bool(near) and bool(np.isin(wanted, np.concatenate(near)).all())


def names(constants: Iterable[tuple[str, Array]], own: Own, folded: Collection[str] = ()) -> list[str]:
    """The names of the constants that were rounded on the way: not the module's own, and no whole numbers.

    Those that are known to be folded are not looked for among the module's own.
    """
    found = (name for name, values in constants if not _whole(values) and (name in folded or not own.holds(values)))
    return list(dict.fromkeys(found))


def after(shipped: Twin, before: Twin, made: Sequence[str], module: torch.nn.Module) -> list[str]:
    """The same of the file, where the graph before the optimizer is at hand: bytes alone would not tell.

    A constant is the module's own under its name in that graph, or in any order of what that graph only moves
    (`folding`). A weight norm at a fresh start gives the bytes of the weight that went in, and yet another function.

    Args:
        shipped: The file.
        before: The graph before the optimizer.
        made: Its constants that were rounded.
        module: As it was exported.
    """
    graph = before.model.graph
    tensors = {name: tensor for name, tensor in before.float_tensors() if name not in made}
    folded = folding.absorbing(graph, {name for name, _ in shipped.float_tensors()})
    state = dict(_state(module))

    def array(name: str) -> Array:
        """The module's where it has it: widened, a model is twice its size."""
        found = _array(state[name]) if name in state else None
        return before.read(tensors[name]) if found is None else found

    own = Own(array(name) for name in sorted(tensors.keys() & folding.moved(graph)))

    def kept(name: str, values: Array) -> bool:
        return name in tensors and name not in folded and np.array_equal(values, before.read(tensors[name]))

    constants = ((name, values) for name, values in shipped.float_constants() if not kept(name, values))
    return names(constants, own, folded)


def _are_halves(values: Array) -> bool:
    """Whether float16 or bfloat16 holds them all."""
    with np.errstate(over="ignore"):
        narrow, single = values.astype(np.float16), values.astype(np.float32)
    brief = (single == values) & (single.view(np.uint32) & 0xFFFF == 0)
    return bool((narrow == values).all()) or bool(brief.all())


def _whole(values: Array) -> bool:
    return bool((values == np.rint(values)).all())


def _state(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and buffers, by all their names: the exporter takes any of those that a tied one has."""
    return chain(module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False))


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
