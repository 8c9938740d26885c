"""Where a graph first goes wrong: inner values beside PyTorch's, then the likeliest node alone on PyTorch's inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import onnx

from onnx_ci.artifact.tensors import Value
from onnx_ci.divergence.dataflow import Dataflow, NotExtracted, Part, Region
from onnx_ci.divergence.session import CpuSession, Open
from onnx_ci.numerics import divergence, function
from onnx_ci.numerics.divergence import Gap, Trail
from onnx_ci.numerics.parity import largest_magnitude

CHUNK = 256 << 20
"""Bytes of inner values that are held at once, of one of the three runs."""
_MOST_ALONE = 6
_TIMES_HELD = 8
"""How often a value is there at once where its rounding is measured: drawn anew four times, and twice as wide."""

Inner = Callable[[Sequence[str]], Mapping[str, Value]]
"""The model's own values of these names, from one run."""


class Reference(Protocol):
    """What a graph's inner values should be, by the names that they have in the graph."""

    def sizes(self) -> Mapping[str, int]:
        """The values that are known, with the bytes of each."""

    def expected(self, names: Sequence[str]) -> Mapping[str, Value]:
        """In the deployment dtype."""

    def exact(self, names: Sequence[str]) -> Mapping[str, Value]:
        """In float64; empty where there is no such run."""

    def exact_from(self, name: str, given: Mapping[str, Value], part: onnx.ModelProto) -> Value:
        """One value in float64, made from these others as the part makes it; None where that can't be had."""


@dataclass(frozen=True, slots=True)
class Alone:
    """A part of the model that was run on PyTorch's inputs, and how far off it is there."""

    gap: Gap
    part: Part


@dataclass(frozen=True, slots=True)
class Located:
    """The first value that goes wrong.

    Attributes:
        gap: Its own, in the run of the whole model.
        nodes: Those that make it out of values that are within budget; the last is its own.
        alone: None where they could not be run alone.
        is_cause: False where the nodes are right on PyTorch's inputs, so that they only pass on what they were given.
        carriers: Values that are wrong because of it.
        amplifiers: Where PyTorch's own error jumps.
    """

    gap: Gap
    nodes: list[onnx.NodeProto]
    alone: Alone | None
    is_cause: bool
    carriers: list[str] = field(default_factory=list)
    amplifiers: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sweep:
    """A model beside its reference, on one set of inputs.

    Attributes:
        feeds: The inputs of the model, by name.
        inner: Runs it with inner values as outputs.
        folder: Where its external data lies.
        allowed: The budget, as a multiple of PyTorch's error.
        limit: For a model that ran in float64: the relL2 that is allowed, and nothing else counts but `rounding`.
        rounding: By name, the relL2 that a value in float64 has by the rounding of constants alone.
        who: Whose values the reference has, in words.
        open_part: Opens a part that is run alone, as it is in the file.
    """

    dataflow: Dataflow
    reference: Reference
    feeds: Mapping[str, Value]
    inner: Inner
    folder: Path
    allowed: float = 4.0
    limit: float | None = None
    rounding: Callable[[Sequence[str]], Mapping[str, float]] | None = None
    who: str = "PyTorch"
    open_part: Open = lambda raw: CpuSession(raw, optimized=False)  # a default of a field


def locate(sweep: Sweep, outputs: Sequence[str], *, chunk: int = CHUNK) -> Located | None:
    """The first value that goes wrong on the way to these outputs; None where all inner values are within budget."""
    sizes = sweep.reference.sizes()
    names = [name for name in sweep.dataflow.order if name in sizes]
    chunk //= _TIMES_HELD if sweep.rounding is not None else 1
    gaps = [one for part in _chunks(names, sizes, chunk) for one in _gaps(sweep, part)]
    found = divergence.trail(gaps, sweep.dataflow.parents(names), outputs)
    by_name = {one.name: one for one in gaps}
    first: Located | None = None
    for name in found.candidates[:_MOST_ALONE]:
        located = _located(sweep, by_name[name], names, found)
        if located.is_cause:
            return located
        first = first or located
    return first


def _gaps(sweep: Sweep, names: Sequence[str]) -> list[Gap]:
    actual, exact = sweep.inner(names), sweep.reference.exact(names)
    if sweep.limit is not None:
        rounding = sweep.rounding(names) if sweep.rounding is not None else {}
        return [
            divergence.function_gap(name, actual[name], exact[name], function.allowed(rounding.get(name), sweep.limit))
            for name in names
            if name in exact and name in actual
        ]
    expected, unit = sweep.reference.expected(names), largest_magnitude(sweep.feeds)
    return [
        divergence.gap(
            name, actual[name], expected[name], exact.get(name), allowed=sweep.allowed, unit=unit, who=sweep.who
        )
        for name in names
    ]


def _chunks(names: Sequence[str], sizes: Mapping[str, int], most: int) -> Iterator[list[str]]:
    part: list[str] = []
    held = 0
    for name in names:
        if part and held + sizes[name] > most:
            yield part
            part, held = [], 0
        part.append(name)
        held += sizes[name]
    if part:
        yield part


def _located(sweep: Sweep, gap: Gap, names: Sequence[str], found: Trail) -> Located:
    region = sweep.dataflow.region(gap.name, set(names))
    try:
        alone = None if sweep.limit is not None else _alone(sweep, region, set(names))
    except Exception:  # ONNX Runtime's errors have no common base, nor onnx's: it stays unknown
        alone = None
    return Located(
        gap=gap,
        nodes=region.nodes,
        alone=alone,
        is_cause=sweep.limit is not None or alone is None or alone.gap.divergent,
        carriers=found.carriers,
        amplifiers=found.amplifiers,
    )


def _alone(sweep: Sweep, region: Region, known: set[str]) -> Alone | None:
    wanted = [name for name in region.inputs if name in known]
    if any(name not in known and name not in sweep.feeds for name in region.inputs):
        return None
    actual = sweep.inner([*wanted, region.value])
    expected = sweep.reference.expected([*wanted, region.value])
    given = {name: sweep.feeds[name] for name in region.inputs if name in sweep.feeds}
    for name in wanted:
        given[name] = _in_form_of(actual[name], expected[name])
    target = _in_form_of(actual[region.value], expected[region.value], cast=False)
    model = sweep.dataflow.submodel(region, given, target, sweep.folder)
    made = sweep.open_part(model.SerializeToString()).run(given)
    exact = sweep.reference.exact_from(region.value, given, model)
    unit = largest_magnitude(given)
    gap = divergence.gap(
        region.value,
        made[region.value],
        target,
        exact,
        allowed=sweep.allowed,
        unit=unit,
        scores=given,
        who=sweep.who,
    )
    return Alone(gap, Part(model=model, inputs=given, expected=target, actual=made[region.value]))


def _in_form_of(actual: Value, expected: Value, *, cast: bool = True) -> Value:
    """PyTorch's value as the graph takes it: in the graph's dtype, and a lone number in its shape.

    Raises:
        NotExtracted: The shapes differ, so that nothing downstream of it can run.
    """
    if not isinstance(actual, np.ndarray) or not isinstance(expected, np.ndarray):
        raise NotExtracted("a value is no tensor")
    if cast and actual.size != expected.size:
        raise NotExtracted("a value has another shape")
    shaped = expected.reshape(actual.shape) if actual.size == expected.size == 1 else expected
    return shaped.astype(actual.dtype) if cast else shaped
