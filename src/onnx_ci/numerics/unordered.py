"""Puts outputs whose order is not promised into the order of those they are compared with; what is wrong stays wrong.

One permutation a row must serve all outputs of a case that hang on the same TopK: values, their indices, and whatever
was gathered by these. So a value that nothing on the other side matches, or that moved without its index, differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from onnx_ci.numerics.dtypes import Array, Floats, Value, float_dtype, integers, is_string, real_parts, widen
from onnx_ci.records.cases import OpenOrder

_NEAR = 1e-3  # of the spread: what is nearer is matched before all that is not
_NAN, _INFINITY = 1e9, 2e9  # stand for what has no distance


def aligned(orders: Mapping[str, OpenOrder], like: Mapping[str, Value], given: Mapping[str, Value]) -> dict[str, Value]:
    """The values given, by name, in the order of `like` wherever they have none of their own.

    Args:
        orders: By name the outputs whose order is open.
        like: What is expected.
        given: What is compared with it; outputs of another shape stay as they are.
    """
    made = dict(given)
    for group in _groups(orders, like, given).values():
        left, right = ([_rows(pair[at], orders[name]) for name, *pair in group] for at in (0, 1))
        places = _places(*_features(left, right))
        made.update({name: _moved(got, orders[name], places) for name, _, got in group})
    return made


def _groups(
    orders: Mapping[str, OpenOrder], like: Mapping[str, Value], given: Mapping[str, Value]
) -> dict[tuple[object, ...], list[tuple[str, Array, Array]]]:
    """Both sides of the outputs by what they are in the order of, and by their rows."""
    groups: dict[tuple[object, ...], list[tuple[str, Array, Array]]] = {}
    for name, order in orders.items():
        want, got = like.get(name), given.get(name)
        if not isinstance(want, np.ndarray) or not isinstance(got, np.ndarray) or want.shape != got.shape:
            continue
        if not want.size or is_string(want.dtype) or is_string(got.dtype):
            continue
        if max([order.axis, *order.rows]) < want.ndim:
            key = order.node, want.shape[order.axis], *(want.shape[axis] for axis in order.rows)
            groups.setdefault(key, []).append((name, want, got))
    return groups


def _axes(array: Array, order: OpenOrder) -> list[int]:
    """Rows, the selected, and the rest."""
    return [*order.rows, order.axis, *(at for at in range(array.ndim) if at != order.axis and at not in order.rows)]


def _rows(array: Array, order: OpenOrder) -> Array:
    """``[row, selected, feature]``."""
    count = int(np.prod([array.shape[axis] for axis in order.rows], dtype=np.int64))
    return array.transpose(_axes(array, order)).reshape(count, array.shape[order.axis], -1)


def _moved(array: Array, order: OpenOrder, places: Array) -> Array:
    """The array with what stands at ``places[row, at]`` of each row moved to `at`."""
    axes, rows = _axes(array, order), _rows(array, order)
    taken = np.stack([row[at] for row, at in zip(rows, places, strict=True)])
    shape = [array.shape[axis] for axis in axes]
    return np.ascontiguousarray(taken.reshape(shape).transpose(np.argsort(axes)))


def _features(left: Sequence[Array], right: Sequence[Array]) -> tuple[Floats, Floats]:
    """Both sides as numbers to match by: floats in units of their spread, and whole numbers that differ far apart."""
    sides: tuple[list[Floats], list[Floats]] = ([], [])
    for want, got in zip(left, right, strict=True):
        floats = float_dtype(want.dtype) is not None
        pair = [widen(real_parts(one)) if floats else integers(one).astype(np.float64) for one in (want, got)]
        sure = pair[0][np.isfinite(pair[0])]
        unit = (float(np.abs(sure).max()) or 1.0) if floats and sure.size else 1.0
        for side, one in zip(sides, pair, strict=True):
            scaled = np.nan_to_num(one / unit, nan=_NAN, posinf=_INFINITY, neginf=-_INFINITY)
            side.append(scaled.reshape(*scaled.shape[:2], -1))
    return np.concatenate(sides[0], axis=-1), np.concatenate(sides[1], axis=-1)


def _places(want: Floats, got: Floats) -> Array:
    """For each row which place of `got` stands for each of `want`: every one once, the nearest that is left."""
    return np.stack([_matched(a, b) for a, b in zip(want, got, strict=True)])


def _matched(want: Floats, got: Floats) -> Array:
    places = np.arange(len(want))
    apart = np.abs(want - got).max(axis=-1)
    if bool((apart <= _NEAR * _NEAR).all()):
        return places
    left = np.ones(len(got), np.bool_)
    later: list[int] = []
    for at, one in enumerate(want):
        near = np.where(left, np.abs(got - one).max(axis=-1), np.inf)
        best = int(near.argmin())
        if near[best] <= _NEAR:
            places[at], left[best] = best, False
        else:
            later.append(at)
    for at in later:
        best = int(np.where(left, np.abs(got - want[at]).sum(axis=-1), np.inf).argmin())
        places[at], left[best] = best, False
    return places
