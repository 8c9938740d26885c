"""The user's cases at sizes that the capture does not hold for, of dims without a declared range."""

from __future__ import annotations

from collections.abc import Sequence

from onnx_ci.export.places import spot
from onnx_ci.export.probe import AGREED, REFUSED, Probe
from onnx_ci.export.ranges import Range, is_declared
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import RunCase
from onnx_ci.records.result import Finding, finding


def judge(probe: Probe, user: Sequence[RunCase]) -> list[Finding]:
    """Runs the written file in such a case: what a case shows is promised, whatever range was left to the exporter.

    A case that the module itself refuses, or at size 0 or 1 (which torch keeps apart), is left to other rules.
    """
    subject, graph = probe.subject, probe.graph
    found = []
    for name, captured in graph.reading.captured.items():
        if is_declared(subject.declared.dims.get(name)) or name in graph.reading.tied:
            continue
        case = next((one for one in user if not one.problems and _outside(one.dims.get(name), captured)), None)
        if case is None:
            continue
        said = probe.tried(case, f"{name} = {case.dims[name]}")
        if not said.startswith(REFUSED):
            found.append(_finding(subject, graph, name, case, said))
    return found


def _outside(size: int | None, captured: Range) -> bool:
    return size is not None and size > 1 and size not in captured


def _finding(subject: Subject, graph: Graph, name: str, case: RunCase, said: str) -> Finding:
    captured = graph.reading.captured[name]
    guard, place = graph.reading.causes.get(name, ("", None))
    because = (f" because of {guard}" if guard else "") + (f" ({place.shown})" if place else "")
    frozen = captured.least == captured.most
    holds = f"the export froze it to {captured.least}" if frozen else f"the exported graph holds for {captured}"
    return finding(
        "contract.static-dim" if frozen else "contract.range",
        "warn" if said == AGREED else "fail",
        name,
        f"the case {case.name} has {name} = {case.dims[name]}, but {holds}{because}; there, {said}",
        hint=f"Change that line, or declare the sizes that hold under {subject.where}.dims and take out the case.",
        data={"captured": [captured.least, captured.most], "guard": guard, "case": case.name},
        **spot(place),
    )
