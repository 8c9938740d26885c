"""Which operation that the exporter's optimizer removed is to blame for a value that goes wrong."""

from __future__ import annotations

from dataclasses import replace

from onnx_ci.divergence.tell import Assumption, Diagnosis
from onnx_ci.export import program
from onnx_ci.export.lost import Lost
from onnx_ci.export.subject import Graph


def removed(diagnosis: Diagnosis, graph: Graph) -> Diagnosis:
    """The diagnosis with the lost operation that went into the value, where the optimizer is at fault."""
    if diagnosis.rung != "optimizer" or diagnosis.located is None:
        return diagnosis
    found = _above(graph, diagnosis.located.gap.name)
    if found is None:
        return diagnosis
    return replace(diagnosis, culprits=[found.rule], removed=Assumption(found.text, found.file, found.line))


def _above(graph: Graph, value: str) -> Lost | None:
    """The nearest that a value was made by, with nothing but what is gone in between."""
    if graph.unoptimized is None or not graph.lost:
        return None
    kept = {one.name for node in program.nodes(graph.model) for one in node.outputs}
    reads = {
        made.name: [one.name for one in node.inputs if one is not None and one.name]
        for node in program.nodes(graph.unoptimized)
        for made in node.outputs
    }
    todo, seen = [value], set[str]()
    while todo:
        name = todo.pop(0)
        if name in graph.lost:
            return graph.lost[name]
        if (name == value or name not in kept) and name not in seen:
            todo += reads.get(name, [])
        seen.add(name)
    return None
