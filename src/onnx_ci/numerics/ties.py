"""Integer and boolean outputs that flip where the scores they come from tie: found, explained, counted.

A flip is healthy where two candidates lie closer together than twice the measured error of the scores: then the numbers
can't say which of them is first, on this machine or another. The scores are an output of the same model, or an inner
value that the choosing node reads; and PyTorch's own indices must pick the best of them: that makes them the scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from onnx_ci.numerics.dtypes import Array, Floats, Mask, finite, float_dtype, integers, widen
from onnx_ci.records.base import record

_LAST_PLACES = 8  # a score may be off by so many units in the last place without anyone's fault

_ROUND_NUMBERS = tuple(step / 20 for step in range(-20, 21))


Rule = Literal["any", "order", "zero"]


@record
class ScorePair:
    """Scores of the same case, of one shape: what they should be and what the target makes of them.

    Attributes:
        expected: PyTorch's; of an inner value, the twin's.
        rule: How they choose: "any" for the best of a row, or a round threshold; "order" for suppression, which keeps
            some of them, best first; "zero" for the difference of two values that are compared.
    """

    expected: Array
    actual: Array
    rule: Rule = "any"


Pairs = dict[str, ScorePair]
"""By the name that messages call them."""


@record
class Explained:
    """What was found about the flips of one output.

    Attributes:
        places: True where a flip is explained.
        scores: Name of the output that explains them, or "the oracle"; several are joined with a comma.
        margin: The largest distance between two candidates that was accepted.
        allowed: What it may be: twice the measured error of the scores.
    """

    places: Mask
    scores: str
    margin: float
    allowed: float


def explain(expected: Array, actual: Array, oracle: Array | None, scores: Mapping[str, ScorePair]) -> Explained:
    """Explains as many differences between two exact outputs of one shape as it can.

    Args:
        expected: Indices, labels or a mask, from PyTorch.
        actual: From the target.
        oracle: From PyTorch in float64; where it differs from `expected`, PyTorch itself is not sure.
        scores: The float outputs of the case.
    """
    flips = np.asarray(expected != actual, np.bool_)
    places = np.zeros(flips.shape, np.bool_)
    names: list[str] = []
    margin = allowed = 0.0
    if oracle is not None and oracle.shape == expected.shape:
        places |= flips & np.asarray(oracle != expected, np.bool_)
        names += ["the oracle"] if places.any() else []
    for name, pair in scores.items():
        if bool((places | ~flips).all()):
            break
        limit = 2.0 * _score_error(pair)
        distance = _distance(expected, actual, pair, limit)
        if distance is None:
            continue
        found = flips & ~places & (distance <= limit)
        if found.any():
            places |= found
            names.append(name)
            margin, allowed = max(margin, float(distance[found].max())), max(allowed, limit)
    return Explained(places=places, scores=", ".join(names), margin=margin, allowed=allowed)


def _score_error(pair: ScorePair) -> float:
    """The largest error seen anywhere in the scores, and never less than a few units in the last place."""
    both = finite(pair.expected) & finite(pair.actual)
    kind = float_dtype(pair.expected.dtype)
    if kind is None or not both.any():
        return 0.0
    wide = widen(pair.expected[both])
    seen = float(np.abs(widen(pair.actual[both]) - wide).max())
    return max(seen, _LAST_PLACES * kind.step / 2 * float(np.abs(wide).max()))


def _distance(expected: Array, actual: Array, pair: ScorePair, limit: float) -> Floats | None:
    """How far apart the two candidates are at each place, by PyTorch's scores; None when these are not its scores."""
    if pair.rule == "zero":
        return _from_threshold(expected != 0, pair, limit, (0.0,)) if _is_mask(expected) else None
    if expected.dtype == np.bool_:
        return _from_threshold(expected, pair, limit, _ROUND_NUMBERS)
    if not np.issubdtype(integers(expected).dtype, np.integer):
        return None
    want, got = integers(expected).astype(np.int64), integers(actual).astype(np.int64)
    scores = widen(pair.expected)
    if pair.rule == "order":
        return _in_order(scores, want, got, limit)
    for axis, rows, want_rows, got_rows in _layouts(scores, want, got):
        if _picks_the_best(rows, want_rows, limit):
            apart = _candidates_apart(rows, want_rows, got_rows)
            return np.moveaxis(apart, -1, axis).reshape(expected.shape)
    if scores.shape == want.shape and scores.ndim:
        return _ranks_apart(scores, want, got)
    return None


def _layouts(scores: Floats, want: Array, got: Array) -> Iterator[tuple[int, Floats, Array, Array]]:
    """Ways in which indices can belong to scores, with candidates in the last axis, and the axis they came from.

    Over one axis, kept (top-k, argsort, argmax with keepdim) or dropped; or over all elements, flattened.
    """
    if want.size == 1 and scores.ndim > 1:
        yield -1, scores.reshape(1, -1), want.reshape(1, 1), got.reshape(1, 1)
    for axis in reversed(range(scores.ndim)):
        others = scores.shape[:axis] + scores.shape[axis + 1 :]
        if want.shape == others:
            yield -1, np.moveaxis(scores, axis, -1), want[..., None], got[..., None]
        elif want.ndim == scores.ndim and want.shape[:axis] + want.shape[axis + 1 :] == others:
            rows, want_rows, got_rows = (np.moveaxis(array, axis, -1) for array in (scores, want, got))
            yield axis, rows, want_rows, got_rows


def _picks_the_best(rows: Floats, want: Array, limit: float) -> bool:
    """Whether indices pick the largest (or the smallest) of each row, in any order, within the error of the scores."""
    size, count = rows.shape[-1], want.shape[-1]
    if not want.size or count > size or not bool(((want >= 0) & (want < size)).all()):
        return False
    picked, ordered = np.sort(np.take_along_axis(rows, want, axis=-1), axis=-1), np.sort(rows, axis=-1)
    for best in (ordered[..., size - count :], ordered[..., :count]):
        with np.errstate(invalid="ignore"):
            if bool(((picked == best) | (np.abs(picked - best) <= limit)).all()):
                return True
    return False


def _candidates_apart(rows: Floats, want: Array, got: Array) -> Floats:
    size = rows.shape[-1]
    inside = (got >= 0) & (got < size)
    there = np.take_along_axis(rows, np.where(inside, got, 0), axis=-1)
    with np.errstate(invalid="ignore"):
        apart = np.abs(np.take_along_axis(rows, want, axis=-1) - there)
    return np.where(inside, np.nan_to_num(apart, nan=np.inf), np.inf)


def _ranks_apart(values: Floats, want: Array, got: Array) -> Floats:
    """Distance by rank, where the output holds the picked scores only: the index that came up stood at another rank.

    An index from beyond the list can only tie with its last rank. Rows are the last axis.
    """
    equal = got[..., :, None] == want[..., None, :]
    rank = np.where(equal.any(-1), equal.argmax(-1), want.shape[-1] - 1)
    with np.errstate(invalid="ignore"):
        apart = np.abs(values - np.take_along_axis(values, rank, axis=-1))
    descending = values[..., :-1] >= values[..., 1:]
    ordered = bool(descending.all()) or bool((values[..., :-1] <= values[..., 1:]).all())
    alone = ~equal.any(-1) & (want.shape[-1] == 1)  # one rank alone says nothing about who else was near
    return np.where(alone | (not ordered), np.inf, np.nan_to_num(apart, nan=np.inf))


def _in_order(scores: Floats, want: Array, got: Array, limit: float) -> Floats | None:
    """Distance between the boxes at one place in two lists of kept ones: of one batch and class, best first.

    Args:
        scores: ``[batch, class, box]``.
        want: Rows of (batch, class, box); or boxes alone, where there is one batch and one class.
        got: Likewise.
        limit: By how much PyTorch's own order may be off; where it is by more, these are not its scores.
    """
    if scores.ndim != 3 or not want.size:
        return None
    if want.ndim == 1 and scores.shape[:2] == (1, 1):
        rows, others = (np.stack([0 * boxes, 0 * boxes, boxes], axis=-1) for boxes in (want, got))
        apart = _in_order(scores, rows, others, limit)
        return None if apart is None else apart[:, 2]
    if want.ndim != 2 or want.shape[1] != 3:
        return None
    inside = [np.asarray(((rows >= 0) & (rows < scores.shape)).all(axis=1)) for rows in (want, got)]
    if not bool(inside[0].all()):
        return None
    picked, there = (
        scores[tuple(np.where(ok[:, None], rows, 0).T)] for ok, rows in zip(inside, (want, got), strict=True)
    )
    same_list = (want[1:, :2] == want[:-1, :2]).all(axis=1)
    if bool((same_list & (picked[1:] - picked[:-1] > limit)).any()):
        return None
    comparable = inside[1] & (want[:, :2] == got[:, :2]).all(axis=1)
    apart = np.where(comparable, np.nan_to_num(np.abs(picked - there), nan=np.inf), np.inf)
    return np.repeat(apart[:, None], 3, axis=1)


def _is_mask(array: Array) -> bool:
    return array.dtype == np.bool_ or (array.dtype.kind in "iu" and bool(((array == 0) | (array == 1)).all()))


def _from_threshold(expected: Mask, pair: ScorePair, limit: float, thresholds: Sequence[float]) -> Floats | None:
    """Distance of each score from the threshold that splits a mask, where one of those given does.

    Of an output's scores only round numbers are tried: between any two lies some threshold, so that a free one would
    explain all.
    """
    if pair.expected.shape != expected.shape or not expected.size:
        return None
    scores, best = widen(pair.expected), None
    for threshold in thresholds:
        for sign in (1.0, -1.0):
            side = sign * (scores - threshold)
            if bool((np.where(expected, side, -side) >= -limit).all()):
                apart = np.abs(side)
                best = apart if best is None else np.minimum(best, apart)
    return best
