"""Inputs on which two graphs are held against each other: sizes at the ends of the declared ranges first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from onnx_ci.records.contract import DimContract, TensorContract

Feeds = dict[str, np.ndarray]


def drawn(
    inputs: Sequence[TensorContract],
    dims: Mapping[str, DimContract],
    rng: np.random.Generator,
    *,
    inside: int,
    at_ends: int,
) -> Iterator[Feeds]:
    """Endless inputs as the contract allows them.

    Args:
        inputs: Of the contract; likewise `dims`.
        dims: The ranges of the sizes.
        rng: Draws sizes and values.
        inside: Elements that the inputs may have at a size inside the range; where there are more, its sizes
            are halved.
        at_ends: Likewise at the ends of the ranges; a larger one is left out.
    """
    for sizes in _boundaries(dims):
        if _elements(inputs, sizes) <= at_ends:
            yield {one.name: _values(one, sizes, rng) for one in inputs}
    while True:
        sizes = {name: _rounded(int(rng.integers(dim.min, _last(dim) + 1)), dim) for name, dim in dims.items()}
        while _elements(inputs, sizes) > inside and sizes != _smallest(dims):
            sizes = {name: max(_smallest(dims)[name], _rounded(sizes[name] // 2, dim)) for name, dim in dims.items()}
        yield {one.name: _values(one, sizes, rng) for one in inputs}


def _smallest(dims: Mapping[str, DimContract]) -> dict[str, int]:
    return {name: _rounded(dim.min, dim) for name, dim in dims.items()}


def _boundaries(dims: Mapping[str, DimContract]) -> Iterator[dict[str, int]]:
    """All at min, all at max, then each alone at either end."""
    least = _smallest(dims)
    most = {name: _last(dim) for name, dim in dims.items()}
    yield least
    yield most
    for name in dims:
        yield {**least, name: most[name]}
        yield {**most, name: least[name]}


def _last(dim: DimContract) -> int:
    most = dim.max if dim.max is not None else 2 * dim.min + 64
    return most - most % dim.multiple_of


def _rounded(size: int, dim: DimContract) -> int:
    """The next size that the contract allows, or the largest."""
    return min(-(-size // dim.multiple_of) * dim.multiple_of, _last(dim))


def _elements(inputs: Sequence[TensorContract], sizes: dict[str, int]) -> int:
    return sum(int(np.prod(_shape(one, sizes))) for one in inputs)


def _shape(tensor: TensorContract, sizes: dict[str, int]) -> list[int]:
    return [sizes[axis] if isinstance(axis, str) else axis for axis in tensor.shape or []]


def _values(tensor: TensorContract, sizes: dict[str, int], rng: np.random.Generator) -> np.ndarray:
    shape, dtype = _shape(tensor, sizes), np.dtype(tensor.dtype)
    if tensor.values is not None:
        return rng.choice(np.array(tensor.values), size=shape).astype(dtype)
    if dtype.kind == "f":
        if tensor.low is None or tensor.high is None:
            return rng.standard_normal(shape).astype(dtype)
        return rng.uniform(tensor.low, tensor.high, shape).astype(dtype)
    low, high = (0, 1) if tensor.low is None or tensor.high is None else (int(tensor.low), int(tensor.high))
    return rng.integers(low, high, size=shape, endpoint=True).astype(dtype)
