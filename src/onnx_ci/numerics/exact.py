"""Exact outputs: integers, booleans and strings, where what ties explain does not count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from onnx_ci.numerics import ties
from onnx_ci.numerics.comparison import ExactFigures
from onnx_ci.numerics.dtypes import Array, Mask, integers, is_string, place
from onnx_ci.records.model import ParitySpec


@dataclass(frozen=True)
class CaseContext:
    """What judging one output needs to know of its case.

    Attributes:
        no_oracle: Why the case has no oracle; empty when it has one.
        unsure: Outputs of PyTorch that differ when it is called twice.
        scores: The float outputs, for explaining flips.
        inner: By exact output, the scores inside the graph that it was chosen by.
        flips: Explained flips found so far: what an index chose there is not compared.
    """

    spec: ParitySpec
    unit: float
    no_oracle: str
    unsure: frozenset[str]
    scores: dict[str, ties.ScorePair] = field(default_factory=dict)
    inner: Mapping[str, ties.Pairs] = field(default_factory=dict)
    flips: list[Mask] = field(default_factory=list)


def compare_exact(base: str, want: Array, got: Array, oracle: Array | None, context: CaseContext) -> ExactFigures:
    """Compares integers, booleans and strings; explained flips are remembered in the context."""
    if is_string(want.dtype):
        want, got = _text(want), _text(got)
        oracle = None if oracle is None else _text(oracle)
    want, got = integers(want), integers(got)
    differ = np.asarray(want != got, np.bool_)
    explained, note = np.zeros(want.shape, np.bool_), ""
    if oracle is not None and not is_string(want.dtype):
        context.flips.append(np.asarray(integers(oracle) != want, np.bool_))
    if bool(differ.any()) and context.spec.ties == "explain" and not is_string(want.dtype):
        found = ties.explain(want, got, oracle, {**context.scores, **context.inner.get(base, {})})
        explained = found.places
        context.flips.append(explained)
        if explained.any():
            note = f"{int(explained.sum())} flips where the scores tie ({found.scores}"
            note += f": {found.margin:.2g} apart, {found.allowed:.2g} is twice their error)" if found.allowed else ")"
    left = (differ & ~explained).reshape(-1)
    at = int(left.argmax()) if left.any() else 0
    shown = ["", ""] if not left.any() else [str(array.reshape(-1)[at]) for array in (want, got)]
    return ExactFigures(
        count=want.size,
        differ=int(left.sum()),
        explained=int(explained.sum()),
        at=place(at, want.shape) if left.any() else [],
        expected=shown[0],
        actual=shown[1],
        max_abs=_largest_difference(want, got),
        note=note,
    )


def _text(array: Array) -> Array:
    flat = [item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item) for item in array.reshape(-1)]
    out = np.empty(len(flat), object)
    out[:] = flat
    return out.reshape(array.shape)


def _largest_difference(want: Array, got: Array) -> float | None:
    """Largest difference of whole numbers; modulo 2**64 the difference of any two of 64 bits is exact."""
    if not want.size or not (np.issubdtype(want.dtype, np.integer) or want.dtype == np.bool_):
        return None
    with np.errstate(over="ignore"):
        a, b = want.astype(np.uint64), got.astype(np.uint64)
        return float(np.where(want > got, a - b, b - a).max())
