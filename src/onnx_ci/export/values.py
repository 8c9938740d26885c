"""Makes the values of an input at other sizes: as declared, else in the range seen, else ordinary ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from onnx_ci.export.axes import names_in, size_of
from onnx_ci.export.types import DeclaredInput

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """A tensor of a user's case, with the dims of that case."""

    value: torch.Tensor
    dims: Mapping[str, int]


def make(
    item: DeclaredInput,
    dtype: torch.dtype,
    seen: Sequence[Seen],
    dims: Mapping[str, int],
    rng: np.random.Generator,
    *,
    inverted: bool = False,
) -> torch.Tensor:
    """A tensor of the declared shape at these dims.

    Masks (two values at most) keep an unmasked place in each row; declared ones, and those of booleans, are padded at
    the right as production pads, unless the user's are not. Rows that were sorted stay sorted, and integers that never
    passed a dim's size (lengths, indices, positions) do not pass its new size.

    Args:
        item: What is declared.
        dtype: Of the tensor.
        seen: The same tensor in the user's cases.
        dims: The sizes to make it at.
        rng: Draws.
        inverted: Whether a mask's rows of a single place, which can't be both, are the other of the two.
    """
    shape = tuple(size_of(axis, dims) for axis in item.axes)
    shown = [one for one in seen if one.value.numel()]
    if (levels := _declared_levels(item, dtype, shown)) is not None:
        first = _begins(levels, shown)
        array = _in_order(_mask(levels[::-1] if inverted else levels, shape, rng, first=first), shown)
    elif item.values is not None:
        array = rng.choice(np.asarray(item.values), shape)
    elif item.low is not None or item.high is not None:
        array = _between(*ends(item, shown), shape, dtype, rng)
    elif dtype.is_complex:
        array = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    elif (levels := _levels(dtype, shown)) is not None:
        first = dtype == torch.bool and _begins(levels, shown)
        array = _in_order(_mask(levels[::-1] if inverted else levels, shape, rng, first=first), shown)
    elif not shown:
        array = rng.standard_normal(shape)
    elif dtype.is_floating_point:
        array = _in_order(_between(*span(shown), shape, dtype, rng), shown)
    else:
        array = _integers(item, shape, shown, dims, rng)
    return torch.from_numpy(np.array(array, order="C")).reshape(shape).to(dtype)


def fitted(value: torch.Tensor, seen: Sequence[Seen], dims: Mapping[str, int]) -> torch.Tensor:
    """The example's own values where no axis varies, but indices and lengths kept within the new sizes."""
    if value.dtype.is_floating_point or value.dtype.is_complex or value.dtype == torch.bool or not value.numel():
        return value
    most = _bound([one for one in seen if one.value.numel()], dims, frozenset())
    return value if most is None else value.clamp(max=most)


def repeated(value: torch.Tensor, item: DeclaredInput, dims: Mapping[str, int]) -> torch.Tensor:
    """The example's own values, cut or repeated to the shape at these dims."""
    for at, axis in enumerate(item.axes):
        if value.shape[at]:
            value = value.index_select(at, torch.arange(size_of(axis, dims), device=value.device) % value.shape[at])
    return value


def mask_levels(item: DeclaredInput, dtype: torch.dtype, seen: Sequence[Seen]) -> tuple[Any, Any] | None:
    """The two values of a mask, the unmasked one first; None for all else.

    Integers that were seen as ones only are a mask that hid nothing yet; floats, and zeros, may be anything.
    """
    shown = [one for one in seen if one.value.numel()]
    if dtype == torch.bool:
        return True, False
    if (item.values, item.low, item.high) == (None, None, None):
        levels = _levels(dtype, shown)
        levels = [1, 0] if levels == [1] and not dtype.is_floating_point else levels
    else:
        levels = _declared_levels(item, dtype, shown)
    return (levels[0], levels[1]) if levels is not None and len(levels) == 2 else None


def _declared_levels(item: DeclaredInput, dtype: torch.dtype, seen: Sequence[Seen]) -> list[Any] | None:
    """The two values of an input that is declared to be 0 or 1, the unmasked one first as `_levels` tells it."""
    if item.values is not None:
        two = set(item.values) == {0, 1}
    elif item.low is None and item.high is None:
        return None
    else:
        low, high = ends(item, seen)
        two = not dtype.is_floating_point and not dtype.is_complex and (np.ceil(low), np.floor(high)) == (0, 1)
    return [1, 0] if two else None


def ends(item: DeclaredInput, seen: Sequence[Seen]) -> tuple[float, float]:
    """The ends of a declared range; of one that is open, as far as the values seen go."""
    low, high = span(seen) if seen else (0.0, 1.0)
    if item.low is not None:
        low = item.low
        high = high if item.high is not None or high > low else low + 1
    if item.high is not None:
        high = item.high
        low = low if item.low is not None or low < high else high - 1
    return low, high


def span(seen: Sequence[Seen]) -> tuple[float, float]:
    """The smallest and the largest finite value; 0 and 1 when there is none."""
    found = []
    for one in seen:
        value = one.value.double() if one.value.dtype.is_floating_point else one.value
        value = value[torch.isfinite(value)]
        if value.numel():
            found += [value.min().item(), value.max().item()]
    return (min(found), max(found)) if found else (0.0, 1.0)


def _between(low: float, high: float, shape: tuple[int, ...], dtype: torch.dtype, rng: np.random.Generator) -> Array:
    if dtype.is_floating_point:
        return np.asarray(rng.uniform(low, high, shape))
    least, most = int(np.ceil(low)), int(np.floor(high))
    return np.asarray(rng.integers(least, max(least, most), shape, endpoint=True))


def _levels(dtype: torch.dtype, seen: Sequence[Seen]) -> list[Any] | None:
    """The one or two values of a mask, the unmasked one first; None when it is no mask."""
    if not seen:
        return None if dtype.is_floating_point else [1, 0]
    found: dict[Any, int] = {}
    for one in seen:
        values, counts = torch.unique(one.value, return_counts=True)
        if values.numel() > 2:
            return None
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            found[value] = found.get(value, 0) + count
    ordered = sorted(found, reverse=True)
    zero_and_one = set(ordered) <= {0, 1}
    additive = dtype.is_floating_point and len(ordered) == 2 and ordered[0] == 0 and ordered[1] <= -1000
    return ordered if zero_and_one or additive else None


def _mask(levels: list[Any], shape: tuple[int, ...], rng: np.random.Generator, *, first: bool) -> Array:
    """Both values in each row of more than one place: whichever of the two masks, no row is wholly masked.

    Args:
        levels: The unmasked value, and the masked one.
        shape: Of the mask.
        rng: Draws.
        first: Whether rows begin unmasked. A query of a causal decoder then always sees something. Every second row is
            padded at the right; the others have holes, so that no place is always what its neighbour is.
    """
    array = rng.choice(np.asarray(levels), shape)
    if array.ndim == 0 or not array.size or len(levels) == 1:
        return np.asarray(array)
    rows = array.reshape(-1, shape[-1])
    first = first and array.ndim > 1
    at = np.zeros(len(rows), np.int64) if first else rng.integers(0, shape[-1], len(rows))
    if shape[-1] > 1:
        step = rng.integers(1, shape[-1], len(rows)) if first else 1
        rows[np.arange(len(rows)), (at + step) % shape[-1]] = levels[1]
    rows[np.arange(len(rows)), at] = levels[0]
    if first and shape[-1] > 1:
        kept = rng.integers(1, shape[-1], (len(rows[::2]), 1))
        rows[::2] = np.where(np.arange(shape[-1]) < kept, levels[0], levels[1])
    return rows.reshape(shape)


def _begins(levels: list[Any], seen: Sequence[Seen]) -> bool:
    """Whether the rows of all masks seen begin unmasked; so they do where none was seen."""
    return all(bool((one.value[..., 0] == levels[0]).all()) for one in seen if one.value.dim())


def _integers(
    item: DeclaredInput, shape: tuple[int, ...], seen: Sequence[Seen], dims: Mapping[str, int], rng: np.random.Generator
) -> Array:
    if shape and counts_up([one.value for one in seen]):
        start = min(int(one.value.min()) for one in seen)
        return np.broadcast_to(np.arange(start, start + shape[-1]), shape)
    low, high = span(seen)
    own = frozenset(name for axis in item.axes for name in names_in(axis))
    most = _bound(seen, dims, own)
    if most is not None:
        high = most if _reaches(seen) else min(high, most)
        low = min(low, high)
    array = rng.integers(int(low), int(high), shape, endpoint=True)
    if most is not None and _reaches(seen) and array.size:
        array.reshape(-1)[0] = int(high)  # lengths: the longest row fills the batch
    return _in_order(array, seen)


def _bound(seen: Sequence[Seen], dims: Mapping[str, int], own: frozenset[str]) -> int | None:
    """What integers may be at most, if they never passed the size of a dim in the user's cases.

    A dim of another input that shrinks is always heeded; one that grows, or one of the input's `own`, only where the
    values reached it every time, as lengths and positions do.
    """
    bounds = []
    for name, size in dims.items():
        sizes = [one.dims.get(name) for one in seen]
        if not seen or None in sizes:
            continue
        slack = [known - int(one.value.max()) for known, one in zip(sizes, seen, strict=True) if known is not None]
        shrinks = all(known is None or size < known for known in sizes)
        if min(slack) >= 0 and ((shrinks and name not in own) or max(slack) <= 1):
            bounds.append(size if min(slack) == 0 else size - 1)
    return max(min(bounds), 0) if bounds else None


def _reaches(seen: Sequence[Seen]) -> bool:
    """Whether the largest value is a dim's size, or one less, in every case."""
    names = set.intersection(*(set(one.dims) for one in seen)) if seen else set()
    return any(all(0 <= one.dims[name] - int(one.value.max()) <= 1 for one in seen) for name in names)


def counts_up(seen: Sequence[torch.Tensor]) -> bool:
    """Whether all rows count up from one start, as positions do."""
    return all(_counts_up(value) for value in seen)


def _counts_up(value: torch.Tensor) -> bool:
    if value.dim() == 0 or value.shape[-1] < 2:
        return False
    return bool((value.diff(dim=-1) == 1).all()) and bool((value[..., 0] == value.reshape(-1)[0]).all())


def _in_order(array: Array, seen: Sequence[Seen]) -> Array:
    """Sorts each row as the rows seen were sorted."""
    if array.ndim == 0:
        return array
    known = [one.value.to(torch.int8) if one.value.dtype == torch.bool else one.value for one in seen]
    steps = [value.diff(dim=-1) for value in known if value.dim() and value.shape[-1] > 1]
    if not any(bool((step != 0).any()) for step in steps):
        return array
    if all(bool((step <= 0).all()) for step in steps):
        return np.asarray(np.sort(array, axis=-1)[..., ::-1])
    if all(bool((step >= 0).all()) for step in steps):
        return np.asarray(np.sort(array, axis=-1))
    return array
