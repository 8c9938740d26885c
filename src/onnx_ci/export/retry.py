"""Exports again at other sizes where a dim fell to an example that no user chose: the fault may be the example's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from onnx_ci.export import another, arguments, cases
from onnx_ci.export.another import Room
from onnx_ci.export.axes import Sizes
from onnx_ci.export.ranges import declared_range
from onnx_ci.export.sizes import Plan
from onnx_ci.export.state import answer
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import Declared, RunCase
from onnx_ci.records.result import Finding

Built = Graph | list[Finding]
_OF_THE_EXAMPLE = frozenset({"contract.static-dim", "contract.tied-dim", "contract.range"})
_MOST_TRIES = 3
"""Sizes that the module may refuse before the first export stands."""


def settled(
    subject: Subject, example: RunCase, user: Sequence[RunCase], built: Built, build: Callable[[Subject], Built]
) -> tuple[Subject, RunCase, Built]:
    """The first export that holds at every size declared, of the one given and another; else the one given.

    A size that leaves a single window is frozen to it, and one that happens to equal another is tied to it. A size that
    the module's own code assumes falls at any example.
    """
    if example.origin != "example" or not _fallen(built):
        return subject, example, built
    unchosen = {name for name in example.dims if (spec := subject.declared.dims.get(name)) and spec.example is None}
    for sizes in itertools.islice(others(subject.declared, example.dims, unchosen), _MOST_TRIES):
        case = moved(example, sizes, subject.declared, user)
        call = arguments.bind(subject.module, case.inputs)
        eager = answer(subject.module, call)
        if eager.error:
            continue
        leaves = arguments.leaves(subject.module, case.inputs)
        other = replace(subject, example=case.inputs, call=call, leaves=leaves, eager=eager)
        again = build(other)
        return (other, case, again) if isinstance(again, Graph) and not _fallen(again) else (subject, example, built)
    return subject, example, built


def moved(example: RunCase, sizes: Sizes, declared: Declared, user: Sequence[RunCase]) -> RunCase:
    """The example at other sizes; equal sizes give equal values."""
    why = "made from the declared shapes: the export ran on it, since it assumed more at other sizes"
    return replace(cases.make(Plan(example.name, why, sizes), declared, example, user), origin="example", redrawn=None)


def _fallen(built: Built) -> bool:
    found = built.findings if isinstance(built, Graph) else built
    return any(one.status == "fail" and one.rule in _OF_THE_EXAMPLE for one in found)


def others(declared: Declared, example: Sizes, movable: Collection[str]) -> Iterator[Sizes]:
    """Other sizes for these dims, inside what is declared of them."""
    rooms = {}
    for name in example:
        spec = declared.dims.get(name)
        if spec is not None and name in movable:
            promised = declared_range(spec)
            rooms[name] = Room(max(promised.least, 2), promised.most, spec.multiple_of)
    taken = {axis for item in declared.inputs for axis in item.axes if isinstance(axis, int)}
    return another.variations(rooms, example, taken, [])
