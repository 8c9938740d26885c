"""All cases beside the user's: at the edges of dims, at both sides of jumps, a batch in parts, special values."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnx_ci.export import affordable, batch, cases, operations, promise, rounding, scan, sizes, special
from onnx_ci.export.affordable import Fits
from onnx_ci.export.batch import Batch
from onnx_ci.export.measure import measure
from onnx_ci.export.sizes import Plan, Range
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import NamedInputs, RunCase
from onnx_ci.records.result import Finding


@dataclass(frozen=True, slots=True)
class Gathered:
    """The cases that were made.

    Attributes:
        notes: What was left out, a sentence each; nothing that another run would say otherwise, since they ship.
        batch: Which of them are one batch in parts.
    """

    cases: list[RunCase]
    findings: list[Finding]
    notes: list[str]
    batch: Batch


def gather(
    subject: Subject,
    graph: Graph,
    example: RunCase,
    user: Sequence[RunCase],
    mix: Sequence[Mapping[str, float]] = (),
) -> Gathered:
    """Makes them all, none at sizes that the captured graph does not hold for; those of a request mix among them."""
    notes: list[str] = []
    base = example if example.dims else measure(example, subject.declared)
    allowed = promise.ranges(subject, graph)
    flops = operations.count(subject.module, subject.call)
    edges = cases.boundary_cases(subject.declared, allowed, base, user, notes=notes, flops=flops)
    limits, shapes, widths = cases.frame(subject.declared, allowed, base)
    fits = affordable.budget(base.dims, shapes, widths, flops)

    def make(plan: Plan) -> RunCase:
        return cases.make(plan, subject.declared, base, user)

    draws = itertools.count()

    def inputs(dims: Mapping[str, int]) -> NamedInputs:
        return make(Plan(f"scan-{next(draws)}", "", dict(dims))).inputs  # other values each time

    asked = scan.Asked(
        ranges=limits,
        base=base.dims,
        planned=[base.dims, *(case.dims for case in user), *(case.dims for case in edges)],
        pairs=sizes.neighbours(shapes, limits),
        fits=fits,
        make=inputs,
    )
    plans, told = scan.scan(subject, asked, _outputs(subject, graph))
    served = sizes.mixed(mix, limits, base.dims, [case.dims for case in (example, *user, *edges)])
    known = [*asked.planned, *(plan.dims for plan in (*served, *plans))]
    rounded = _rounded(graph, limits, base, fits, known)
    made = [*edges, *(make(plan) for plan in (*served, *plans, *rounded))]
    held = [case for case in made if all(item.allows(case.dims) for item in graph.restrictions)]
    rows = batch.plan(subject, graph, base, limits, make, fits)
    values = special.special_cases(subject.declared, base, user, cases.generator(subject.spec.name, "special"))
    most = special.most_of(flops)
    notes += [f"{one.name} is left out: a call takes {flops:.2g} floating-point operations" for one in values[most:]]
    return Gathered([*held, *rows.cases, *values[:most]], [told, *rows.findings], notes, rows)


def _rounded(
    graph: Graph, limits: Mapping[str, Range], base: RunCase, fits: Fits, known: Sequence[Mapping[str, int]]
) -> list[Plan]:
    if graph.captured is None:
        return []
    return rounding.plans(graph.captured.program.graph, graph.reading.symbols, limits, base.dims, fits, known)


def _outputs(subject: Subject, graph: Graph) -> list[str]:
    """The names of the module's outputs, in their order; of one that the file lacks, its number."""
    names = {at: name for name, at in graph.outputs.items()}
    return [names.get(at, str(at)) for at in range(len(subject.eager.values))]
