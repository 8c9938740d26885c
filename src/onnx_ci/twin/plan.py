"""A graph made ready to run: its steps in order, their attributes resolved, and when each value may be dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import AttributeProto

from onnx_ci.twin.attributes import decoded, defaults

Functions = Mapping[tuple[str, str, str], onnx.FunctionProto]
OWN_DOMAINS = ("", "ai.onnx")
_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


@dataclass(frozen=True, slots=True)
class Step:
    """One node: where its attributes hold graphs, their plans; where it calls a function of the file, that one's."""

    node: onnx.NodeProto
    version: int
    attributes: dict[str, Any]
    graphs: dict[str, Plan]
    body: Plan | None
    drops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A graph, or the body of a function at one call of it."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: dict[str, onnx.TensorProto]
    sparse: dict[str, onnx.SparseTensorProto] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)


def plan_of(model: onnx.ModelProto) -> Plan:
    """The plan of a model's main graph."""
    functions = {(item.domain, item.name, item.overload): item for item in model.functions}
    return _graph(model.graph, _versions(model.opset_import), functions, {})


def called(node: onnx.NodeProto) -> str:
    """What stands before the names of constants inside the function that a node calls, to tell them from others."""
    return f"{node.domain}:{node.op_type}:{node.overload}/"


def plans(plan: Plan, before: str = "", seen: set[str] | None = None) -> Iterator[tuple[str, Plan]]:
    """A plan and those of all graphs and functions inside it, a function once, each with what stands before its names.

    Graphs have none, since a name is never that of a value around it; two branches of one If may share some.
    """
    seen = set() if seen is None else seen
    yield before, plan
    for step in plan.steps:
        for graph in step.graphs.values():
            yield from plans(graph, before, seen)
        if step.body is not None and called(step.node) not in seen:
            seen.add(called(step.node))
            yield from plans(step.body, called(step.node), seen)


def _versions(opsets: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    return {"" if item.domain == "ai.onnx" else item.domain: item.version for item in opsets}


def _graph(graph: onnx.GraphProto, opsets: dict[str, int], functions: Functions, given: _Given) -> Plan:
    constants = {item.name: item for item in graph.initializer}
    sparse = {item.values.name: item for item in graph.sparse_initializer}
    inputs, outputs = [item.name for item in graph.input], tuple(item.name for item in graph.output)
    steps = _steps(graph.node, outputs, opsets, functions, given)
    return Plan(tuple(inputs), outputs, constants, sparse, steps)


_Given = Mapping[str, AttributeProto]


def _function(function: onnx.FunctionProto, call: onnx.NodeProto, opsets: dict[str, int], functions: Functions) -> Plan:
    given = {item.name: item for item in [*function.attribute_proto, *call.attribute]}
    own = {**opsets, **_versions(function.opset_import)}
    steps = _steps(function.node, function.output, own, functions, given)
    return Plan(tuple(function.input), tuple(function.output), {}, {}, steps)


def _steps(
    nodes: Sequence[onnx.NodeProto],
    outputs: Sequence[str],
    opsets: dict[str, int],
    functions: Functions,
    given: _Given,
) -> list[Step]:
    nodes = [_resolved(node, given) for node in nodes]
    last: dict[str, int] = {}
    for at, node in enumerate(nodes):
        last.update(dict.fromkeys(_reads(node), at))
        for name in node.output:
            last.setdefault(name, at)
    drops: dict[int, list[str]] = {}
    for name, at in last.items():
        if name and name not in outputs:
            drops.setdefault(at, []).append(name)
    return [_step(node, opsets, functions, given, tuple(drops.get(at, ()))) for at, node in enumerate(nodes)]


def _step(
    node: onnx.NodeProto, opsets: dict[str, int], functions: Functions, given: _Given, drops: tuple[str, ...]
) -> Step:
    domain = "" if node.domain in OWN_DOMAINS else node.domain
    function = functions.get((node.domain, node.op_type, node.overload))
    if function is not None:
        return Step(node, 0, {}, {}, _function(function, node, opsets, functions), drops)
    version = opsets.get(domain, 1)
    attributes = dict(defaults(node.op_type, version)) if not domain else {}
    attributes |= {item.name: decoded(item) for item in node.attribute if item.type not in _GRAPHS}
    graphs = {
        item.name: _graph(item.g, opsets, functions, given)
        for item in node.attribute
        if item.type == AttributeProto.GRAPH
    }
    return Step(node, version, attributes, graphs, None, drops)


def _resolved(node: onnx.NodeProto, given: _Given) -> onnx.NodeProto:
    """The node with references to its function's attributes replaced; one that the call left out is left out."""
    if not any(item.ref_attr_name for item in node.attribute):
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    for item in node.attribute:
        if not item.ref_attr_name:
            copy.attribute.append(item)
        elif item.ref_attr_name in given:
            copy.attribute.append(given[item.ref_attr_name])
            copy.attribute[-1].name = item.name
    return copy


def _reads(node: onnx.NodeProto) -> Iterable[str]:
    """Names that a node reads, those that its graphs read from outside included (their own do no harm)."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield from (item.name for item in attribute.g.output)
            for inner in attribute.g.node:
                yield from _reads(inner)
