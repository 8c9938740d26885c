"""Sizes that the capture left out of a declared range: where they are few, the written file is tried at each of them.

torch narrows a range also where it can't tell that a graph holds: of an interpolation with aligned corners that gives a
single pixel it says so, and the file is right there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from onnx_ci.export import affordable, cases, promise
from onnx_ci.export.axes import Sizes
from onnx_ci.export.measure import measure
from onnx_ci.export.probe import AGREED, Probe
from onnx_ci.export.ranges import declared_range
from onnx_ci.export.sizes import Plan
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import RunCase
from onnx_ci.records.result import Finding

MOST = 24
"""Sizes that are tried; of more, none could say that all of them hold."""
_AGREES = 1e-5
"""relL2 to PyTorch below which the file computes the same function: ten times a float32's own error, and less than any
size that was baked in.
"""


def settle(probe: Probe, findings: Sequence[Finding], example: RunCase, user: Sequence[RunCase]) -> list[Finding]:
    """The findings, a narrowed range as a warning where the file gives PyTorch's outputs at all that was left out."""
    base = example if example.dims else measure(example, probe.subject.declared)
    return [_tried(probe, one, base, user) if _is_narrowed(one) else one for one in findings]


def _is_narrowed(one: Finding) -> bool:
    return one.rule == "contract.range" and one.status == "fail" and bool(one.subject)


def _tried(probe: Probe, one: Finding, base: RunCase, user: Sequence[RunCase]) -> Finding:
    subject, graph = probe.subject, probe.graph
    left_out = _left_out(subject, graph, one.subject)
    if not left_out or one.subject not in base.dims:
        return one
    for dims in _sizes(subject, graph, one.subject, left_out, base):
        case = cases.make(Plan(f"{one.subject}-{dims[one.subject]}", "left out", dims), subject.declared, base, user)
        if probe.tried(case, "", agrees=_AGREES) != AGREED:
            return one
    named = ", ".join(map(str, left_out))
    return replace(
        one,
        status="warn",
        message=f"{one.message}; yet {AGREED} at all that it leaves out ({one.subject} = {named})",
        data={**one.data, "tried": left_out},
    )


def _left_out(subject: Subject, graph: Graph, name: str) -> list[int]:
    """The declared sizes outside of the captured range; none where they are too many to try."""
    spec, captured = subject.declared.dims.get(name), graph.reading.captured.get(name)
    promised = declared_range(spec)
    if spec is None or captured is None or promised.most is None:
        return []
    sides = (range(promised.least, captured.least), range((captured.most or promised.most) + 1, promised.most + 1))
    if sum(map(len, sides)) > MOST * spec.multiple_of:
        return []
    return [size for side in sides for size in side if size % spec.multiple_of == 0][: MOST + 1]


def _sizes(subject: Subject, graph: Graph, name: str, left_out: Sequence[int], base: RunCase) -> Iterator[Sizes]:
    """Each with the other dims as in the example; the first and the last also with the others at their ends."""
    limits, shapes, widths = cases.frame(subject.declared, promise.ranges(subject, graph), base)
    fits = affordable.budget(base.dims, shapes, widths)
    for size in left_out:
        yield {**base.dims, name: size}
    for size in dict.fromkeys((left_out[0], left_out[-1])):
        for end in ("min", "top"):
            others = {other: getattr(one, end) for other, one in limits.items() if other != name}
            dims = {**base.dims, **others, name: size}
            if fits(dims):
                yield dims
