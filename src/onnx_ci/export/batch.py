"""Cases of one batch in parts and in another order, and whether the module's rows are independent of each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from onnx_ci.export import arguments, independent
from onnx_ci.export.affordable import Fits
from onnx_ci.export.axes import names_in
from onnx_ci.export.independent import Apart, apart
from onnx_ci.export.sizes import Plan, Range
from onnx_ci.export.state import answer, preserved
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import Declared, NamedInputs, RunCase
from onnx_ci.records.cases import BatchIdentity, Case
from onnx_ci.records.result import Finding

_ROWS = 3


@dataclass(frozen=True, slots=True)
class Batch:
    """The cases, and for which outputs the module keeps its rows apart.

    Attributes:
        whole: The case with all rows.
        cases: Those to be added: the parts, the permuted one, and the whole where it is new.
        findings: What the module's rows say of a declaration that they are independent.
    """

    whole: RunCase | None = None
    parts: list[RunCase] = field(default_factory=list)
    permuted: RunCase | None = None
    cases: list[RunCase] = field(default_factory=list)
    identity: BatchIdentity = field(default_factory=BatchIdentity)
    findings: list[Finding] = field(default_factory=list)

    def resolved(self, cases: Sequence[Case]) -> BatchIdentity:
        """The identity with the indices of the cases as they were written; none where one of them is missing."""
        by_name = {case.name: case.index for case in cases if not case.refused}
        named = [case for case in (self.whole, *self.parts, self.permuted) if case is not None]
        if not named or any(case.name not in by_name for case in named):
            return replace(self.identity, whole=None, parts=[], permuted=None, split=[], permutes=[])
        whole, *parts, permuted = [by_name[case.name] for case in named]
        return replace(self.identity, whole=whole, parts=parts, permuted=permuted)


def plan(
    subject: Subject,
    graph: Graph,
    example: RunCase,
    ranges: Mapping[str, Range],
    make: Callable[[Plan], RunCase],
    fits: Fits,
) -> Batch:
    """Splits and permutes the example's rows, or those of a case made for it, and tries the module on them.

    Args:
        subject: The module.
        graph: For the outputs of the file and their sizes.
        example: What the export ran on, measured.
        ranges: The dims that may vary.
        make: Makes a case.
        fits: Whether a case of these sizes is small enough.
    """
    if subject.spec.batch == "mixed":
        return _none(subject, 'the config says batch = "mixed": rows may depend on each other')
    dim = batch_dim(subject.declared)
    if dim is None:
        return _none(subject, "no one dim is the first axis of inputs, and nothing else")
    if dim not in ranges or dim not in example.dims:
        return _none(subject, f"{dim} does not vary in the file")
    split = _split(ranges[dim], example.dims[dim])
    if split is None:
        return _none(subject, f"the range of {dim} has no room for a batch in two parts")
    rows = sum(split)
    dims = example.dims | {dim: rows}
    new = rows != example.dims[dim]
    tried = [dims, *(dims | {dim: part} for part in split)]
    if not all(fits(one) and all(item.allows(one) for item in graph.restrictions) for one in tried):
        return _none(subject, "its parts are outside what the graph holds for")
    whole = example
    if new:
        whole = replace(make(Plan("batch-whole", f"{rows} rows, to be split and permuted", dims)), redrawn=None)
    first, second = split
    order = [rows - 1, *range(rows - 1)]
    taken = {
        "batch-part-1": (range(first), f"the first {first} of {rows} rows of {whole.name}"),
        "batch-part-2": (range(first, rows), f"the other {second} rows of {whole.name}"),
        "batch-permuted": (order, f"the rows of {whole.name}, the last one first"),
    }
    one, two, permuted = [
        _rows(subject, whole, dim, list(rows_of), name, why) for name, (rows_of, why) in taken.items()
    ]
    whole, one, two, permuted = tried_cases = [_called(subject, case) for case in (whole, one, two, permuted)]
    identity, mixing = _try(graph, dim, tried_cases, order)
    steady = _steady(subject, graph, whole, mixing)
    findings = independent.judge(subject, identity, steady, split)
    if not identity.split and not identity.permutes:
        return Batch(identity=identity, findings=findings)
    cases = [whole, one, two, permuted] if new else [one, two, permuted]
    return Batch(whole, [one, two], permuted, cases, identity, findings)


def batch_dim(declared: Declared) -> str | None:
    """The dim that stands on the first axis of all inputs that have it, and on no other axis; None if there are two."""
    shapes = [item.axes for item in declared.inputs]
    found = []
    for name in dict.fromkeys(str(axes[0]) for axes in shapes if axes and str(axes[0]).isidentifier()):
        places = [(at, axis) for axes in shapes for at, axis in enumerate(axes) if name in names_in(axis)]
        if all(place == (0, name) for place in places):
            found.append(name)
    return found[0] if len(found) == 1 else None


def _none(subject: Subject, why: str) -> Batch:
    identity = BatchIdentity(not_held={"": why})
    return Batch(identity=identity, findings=independent.judge(subject, identity, {}, []))


def _split(one: Range, example: int) -> tuple[int, int] | None:
    """Two parts of different sizes, if there is room: of the example's rows, else of a few more."""
    least = max(one.min, one.step)
    rows = max(example, 2 * least)
    if rows == 2 * least and one.holds(rows + one.step) and rows != example:
        rows += one.step
    if not one.holds(rows) or not one.holds(least):
        return None
    first = max(rows // _ROWS // one.step * one.step, least)
    return (first, rows - first) if one.holds(first) and one.holds(rows - first) else None


def _rows(subject: Subject, whole: RunCase, dim: str, rows: list[int], name: str, why: str) -> RunCase:
    first = {item.path for item in subject.declared.inputs if item.axes and item.axes[0] == dim}

    def change(path: str, leaf: Any) -> Any:
        return leaf[torch.tensor(rows, device=leaf.device)] if path in first else leaf

    inputs: NamedInputs = arguments.rebuild(whole.inputs, change)
    return RunCase(name, "boundary", why, inputs, whole.dims | {dim: len(rows)})


def _try(graph: Graph, dim: str, cases: list[RunCase], order: list[int]) -> tuple[BatchIdentity, dict[str, Apart]]:
    """What holds in PyTorch, and how far rows are apart where it does not."""
    given = [case.given for case in cases if case.given is not None]
    failed = next((one.error for one in given if one.error), "")
    if failed:
        said = f"PyTorch does not take the rows apart ({failed.splitlines()[0][:120]})"
        return BatchIdentity(dim=dim, not_held={"": said}), {}
    split, permutes, not_held, mixing = list[str](), list[str](), dict[str, str](), dict[str, Apart]()
    for name, at in graph.outputs.items():
        values = [one.values[at] for one in given if len(one.values) > at]
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        if len(tensors) != len(given) or any(
            value.shape[:1] != (case.dims[dim],) for value, case in zip(tensors, cases, strict=True)
        ):
            not_held[name] = f"its first axis is not {dim}"
            continue
        whole, first, second, moved = tensors
        if len({value.shape[1:] for value in tensors}) > 1:  # rows of another length in a larger batch
            not_held[name] = f"the shape of a row hangs on {dim}"
            mixing[name] = Apart(not_held[name])
            continue
        parted = apart(torch.cat([first, second]), whole)
        turned = apart(moved, whole[torch.tensor(order, device=whole.device)])
        split += [] if parted else [name]
        permutes += [] if turned else [name]
        if found := parted or turned:
            not_held[name] = f"in PyTorch itself the rows depend on each other ({found.text})"
            mixing[name] = found
    return BatchIdentity(dim=dim, order=order, split=split, permutes=permutes, not_held=not_held), mixing


def _steady(subject: Subject, graph: Graph, whole: RunCase, mixing: Mapping[str, Apart]) -> dict[str, Apart]:
    """Those outputs that a second call gives again: of the others nothing can be told."""
    if not mixing or subject.spec.batch != "independent" or whole.given is None:
        return {**mixing}
    with preserved(subject.module):
        torch.rand(1)  # the generator that a module may draw from has moved on
        again = _called(subject, replace(whole, given=None)).given
    if again is None or again.error:
        return {}

    def same(name: str) -> bool:
        one, other = (given.values[graph.outputs[name]] for given in (whole.given, again) if given is not None)
        return isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and apart(one, other) is None

    return {name: found for name, found in mixing.items() if same(name)}


def _called(subject: Subject, case: RunCase) -> RunCase:
    """The case with what the module gives for it."""
    if case.given is not None:
        return case
    return replace(case, given=answer(subject.module, arguments.bind(subject.module, case.inputs)))
