"""From the exporter's graph to the one that ships: named, ordered, stripped, its sizes and origins noted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir
import torch

from onnx_ci.export import guards, lost, naming, private, program, source, traced
from onnx_ci.export.capture import Captured
from onnx_ci.export.guardlog import GuardLog
from onnx_ci.export.guards import Restriction
from onnx_ci.export.naming import Naming
from onnx_ci.export.program import Translated
from onnx_ci.export.shapes import Reading
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import Leaf
from onnx_ci.records.expression import UNKNOWN
from onnx_ci.records.result import finding


def of_capture(subject: Subject, captured: Captured, translated: Translated, reading: Reading, log: GuardLog) -> Graph:
    """The graph of a captured program, with what the capture says of its sizes."""
    kept, sizes = _kept_outputs(subject, captured)
    sums = [symbol for symbol, axis in reading.symbols.items() if not axis.isidentifier()]
    assumed = [*private.deferred_asserts(captured.program), *traced.bounds(captured.program, sums)]
    found = guards.restrictions(assumed, reading, subject.declared, log)
    reading, found = _adopt_bounds(subject, reading, found)
    rendered = [None if axes is None else [traced.render(size, reading.symbols) for size in axes] for axes in sizes]
    original = {value: value.name for value in _made(translated.model) if value.name}
    present = range(len(subject.tensors))
    graph = _finish(subject, translated.model, translated.unoptimized, kept, present, rendered)
    notes = list(reading.findings)
    if captured.missing:
        notes.append(
            finding(
                "export.capture-fallback", "warn", "",
                f"the program was captured by torch.onnx.export itself, since {captured.missing}: "
                "a declared range may have been narrowed without a word",
                hint="Use the version of torch that this onnx-ci was tested with, or a newer onnx-ci.",
            )
        )  # fmt: skip
    return replace(
        graph,
        reading=reading,
        restrictions=found,
        strategy=captured.strategy,
        findings=[*notes, *graph.findings],
        captured=captured,
        decomposed=translated.program,
        fx={
            **{value.name: name for value, name in original.items() if value.name},
            **_output_nodes(graph, translated.program),
        },
    )


def _made(model: ir.Model) -> Iterator[ir.Value]:
    """The values that the nodes of the main graph make."""
    return (value for node in model.graph for value in node.outputs)


def _output_nodes(graph: Graph, translated: torch.export.ExportedProgram) -> dict[str, str]:
    """For each output of the file the program's node that makes it."""
    signature, constant = translated.graph_signature, torch.export.graph_signature.ConstantArgument
    made = [
        spec.arg.name
        for spec in signature.output_specs
        if spec.kind.name == "USER_OUTPUT" and not isinstance(spec.arg, constant)
    ]
    places = sorted(graph.outputs.values())
    if len(made) != len(places):
        return {}
    nodes = dict(zip(places, made, strict=True))
    return {name: nodes[at] for name, at in graph.outputs.items()}


def of_torchscript(subject: Subject, model: ir.Model, names: Sequence[str]) -> Graph:
    """The older exporter leaves out what the traced call did not use, and keeps its outputs in order."""
    present = {value.name for value in model.graph.inputs}
    found = [at for at, name in enumerate(names) if name in present]
    kept = [at for at, value in enumerate(subject.eager.values) if isinstance(value, torch.Tensor)]
    shapes = [_file_shape(value) for value in model.graph.outputs]
    return _finish(subject, model, None, kept, found, shapes)


def _finish(
    subject: Subject,
    model: ir.Model,
    unoptimized: ir.Model | None,
    kept: Sequence[int],
    present: Sequence[int],
    rendered: Sequence[list[int | str] | None],
) -> Graph:
    """Names, orders and strips the graph that ships, and names and orders the unoptimized one beside it.

    `kept` are eager outputs, `present` tensor leaves, in the graphs' present order.
    """
    tensors = [subject.tensors[at] for at in present]
    graphs = [model] if unoptimized is None else [model, unoptimized]
    for one in graphs:
        program.fix_outputs(one)
    named_in, named_out = _name_inputs(subject, tensors), _name_outputs(subject, model, kept)
    asked = subject.options.output_names if subject.short else subject.spec.outputs
    where = "output_names" if subject.short else f"{subject.where}.outputs"
    output_names, clashes = naming.apart(named_out.names, asked or [], named_in.names, where)
    for one in graphs:
        program.free_names(one, [*named_in.names, *output_names])
        program.arrange(one.graph.inputs, named_in.order, named_in.names)
        program.arrange(one.graph.outputs, named_out.order, output_names)
    mapped = source.source_map(model, subject.places)
    gone = lost.find(unoptimized, model, subject.places)
    source.strip(model)
    ordered = [rendered[at] for at in named_out.order]
    return Graph(
        model=model,
        inputs={name: tensors[at] for name, at in zip(named_in.names, named_in.order, strict=True)},
        outputs={name: kept[at] for name, at in zip(output_names, named_out.order, strict=True)},
        reading=Reading(),
        restrictions=[],
        output_shapes=dict(zip(output_names, ordered, strict=True)),
        source_map=mapped,
        strategy="torchscript",
        findings=[*named_in.findings, *named_out.findings, *clashes],
        unoptimized=unoptimized,
        lost=gone,
    )


def _name_inputs(subject: Subject, tensors: Sequence[Leaf]) -> Naming:
    if not subject.short:
        return naming.inputs(tensors, subject.spec.input_names, subject.where)
    return naming.inputs_by_position(tensors, subject.options.input_names, _user_order(subject, tensors))


def _name_outputs(subject: Subject, model: ir.Model, kept: Sequence[int]) -> Naming:
    keys = [subject.eager.keys[at] for at in kept]
    defaults = [naming.plain(value.name or "output") for value in model.graph.outputs]
    if len(keys) != len(defaults):
        raise RuntimeError(f"the module gives {len(keys)} tensors, but the graph has {len(defaults)} outputs")
    if subject.short:
        return naming.outputs_by_position(keys, subject.options.output_names, defaults)
    return naming.outputs(keys, subject.spec.outputs, defaults, subject.where)


def _user_order(subject: Subject, tensors: Sequence[Leaf]) -> list[int]:
    """The order that torch gives the inputs in the short form's own call: its keywords come as they are written."""
    keywords = list(subject.options.kwargs or {})
    places = {name: at for at, name in enumerate(keywords)}
    first = [at for at, leaf in enumerate(tensors) if leaf.parameter not in places]
    rest = [at for at, leaf in enumerate(tensors) if leaf.parameter in places]
    return first + sorted(rest, key=lambda at: (places[tensors[at].parameter], at))


def _kept_outputs(subject: Subject, captured: Captured) -> tuple[list[int], list[list[Any] | None]]:
    """Which eager outputs the program has: not those that it froze into constants; and their traced sizes."""
    kinds = torch.export.graph_signature.OutputKind
    constant = torch.export.graph_signature.ConstantArgument
    specs = [spec for spec in captured.program.graph_signature.output_specs if spec.kind == kinds.USER_OUTPUT]
    specs = [spec for spec in specs if not (isinstance(spec.arg, constant) and spec.arg.value is None)]
    sizes = traced.output_sizes(captured.program)
    if not len(specs) == len(sizes) == len(subject.eager.values):
        raise RuntimeError(f"the module gives {len(subject.eager.values)} values, but the program {len(specs)}")
    kept = [at for at, spec in enumerate(specs) if not isinstance(spec.arg, constant)]
    return kept, [sizes[at] if sizes[at] is not None else [] for at in kept]


def _adopt_bounds(
    subject: Subject, reading: Reading, found: Sequence[Restriction]
) -> tuple[Reading, list[Restriction]]:
    """A plain bound on a dim without a declared range becomes its range; what is left has to be judged."""
    left = []
    for item in found:
        limit = guards.bound(item, reading, subject.declared)
        if limit is None:
            left.append(item)
        else:
            reading = guards.narrow(reading, item.dims[0], limit, item.text)
    return reading, left


def _file_shape(value: ir.Value) -> list[int | str] | None:
    if value.shape is None:
        return None
    return [size if isinstance(size, int) else (size.value or UNKNOWN) for size in value.shape]
