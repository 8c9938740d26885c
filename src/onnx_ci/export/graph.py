"""From a module to a finished graph in memory: captured, translated, named, ordered, its metadata put right."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir
import torch
from torch.export import ExportedProgram

from onnx_ci.errors import OnnxCiError
from onnx_ci.export import (
    canonical,
    capture,
    derived,
    dimtree,
    guards,
    lost,
    naming,
    private,
    program,
    shapes,
    source,
    stops,
    traced,
)
from onnx_ci.export.capture import Captured
from onnx_ci.export.guardlog import GuardLog, listen
from onnx_ci.export.guards import Restriction
from onnx_ci.export.naming import Naming
from onnx_ci.export.places import spot
from onnx_ci.export.program import Translated
from onnx_ci.export.shapes import Reading
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import Leaf
from onnx_ci.records.expression import UNKNOWN
from onnx_ci.records.result import Finding, finding

_NO_ROOM = (errno.ENOSPC, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC))  # Windows has no quotas
Timed = Callable[[str], Any]
"""Enters a stage of the job, as a context manager."""


class SameProgram(BaseException):
    """The program is the known one, and would give its graph; past the exporter, which wraps each Exception."""


def build(subject: Subject, timed: Timed, known: str = "") -> Graph | list[Finding]:
    """Exports in memory; a list of findings says why where that stops.

    Args:
        subject: What is exported.
        timed: Where the stages are timed.
        known: Digest of the program of a graph that is known already; "" for none.

    Raises:
        SameProgram: The program is the known one.
    """
    log = GuardLog()
    step: stops.Step = "tracing" if subject.options.exporter == "torchscript" else "capture"
    captured: Captured | None = None
    seen: list[ExportedProgram] = []

    def look(made: ExportedProgram) -> None:
        if known.startswith("decomposed") and canonical.decomposed(made, _labels(subject)) == known:
            raise SameProgram
        seen.append(made)

    try:
        if subject.options.exporter == "torchscript":
            with timed("capture"):
                model, names = _trace(subject)
            return _finish_traced(subject, model, names)
        with timed("capture"):
            captured = _capture(subject, log)
            if known.startswith("captured") and canonical.captured(captured.program, _labels(subject)) == known:
                raise SameProgram
            reading = shapes.read(captured.program, subject.leaves, subject.declared, log, subject.where)
            found = derived.relations(subject, captured.program, reading)
            if found:
                notes = derived.told(found, reading)
                subject = replace(subject, declared=derived.substituted(subject.declared, found))
                reading = shapes.read(captured.program, subject.leaves, subject.declared, log, subject.where)
                reading.findings[:0] = notes
            assumed = private.assumptions(captured.program)
        step = "translation"
        with timed("translate"):
            symbols = {str(symbol): name for symbol, name in reading.symbols.items()}
            with listen(log, subject.places):  # decomposing assumes more of the sizes
                translated = program.translate(captured, subject.options, symbols, look)
        built = replace(_finish_captured(subject, captured, translated, reading, log), derived=found)
        if known or not seen or not subject.weights:
            return built  # nobody will ask for its digest
        with timed("digest"):
            return replace(built, program=_program(subject, captured.program, seen[0], assumed))
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:
        return _stopped(subject, error, step, log, captured)


def _stopped(
    subject: Subject, error: Exception, step: stops.Step, log: GuardLog, captured: Captured | None
) -> list[Finding]:
    if isinstance(error, MemoryError) or type(error).__module__.startswith("onnx_ci"):
        raise error
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        raise OnnxCiError(
            f"the exporter has no room to write: {error.strerror}", where=str(error.filename or "")
        ) from error
    stop = stops.read(error, step, log, subject.places, subject.module, captured.program if captured else None)
    findings = [stops.judge(stop, subject.options.exporter)]
    if captured is None and log.violations:
        findings.insert(0, _unrefined(subject, log))
    return findings


def _unrefined(subject: Subject, log: GuardLog) -> Finding:
    place = next((guard.place for guard in log.guards if guard.place), None)
    lines = [line.strip(" -") for line in log.violations[-1].splitlines() if line.strip().startswith("- ")]
    return finding(
        "contract.range",
        "fail",
        "",
        f"the declared dims do not hold: {' '.join(lines) or log.violations[-1]}",
        hint=f"Declare the range that holds under {subject.where}.dims, or change the line that narrows it.",
        **spot(place),
    )


def _program(
    subject: Subject, captured: ExportedProgram, made: ExportedProgram, assumed: private.Assumptions | None
) -> str:
    """The digest to compare another export by: of the captured program, if decomposing it assumed nothing new."""
    if assumed is not None and assumed == private.assumptions(captured):
        return canonical.captured(captured, _labels(subject))
    return canonical.decomposed(made, _labels(subject))


def _labels(subject: Subject) -> list[str]:
    """What names and orders the edges of the graph, beside the program itself."""
    return [*(leaf.path for leaf in subject.tensors), "", *subject.eager.keys]


def _capture(subject: Subject, log: GuardLog) -> Captured:
    given = None if subject.spec.fixed else subject.options.dynamic_shapes  # they know nothing of what a variant fixes
    tree = (
        dimtree.shapes_from_user(given, subject.declared)
        if given is not None
        else dimtree.shapes_from_declared(subject.module, subject.call, subject.leaves, subject.declared)
    )
    return capture.capture(subject.module, subject.call, tree, log, subject.places)


def _trace(subject: Subject) -> tuple[ir.Model, list[str]]:
    by_path = {item.path: item for item in subject.declared.inputs}
    named = naming.inputs_by_position(subject.tensors, subject.options.input_names, range(len(subject.tensors)))
    items = [by_path.get(leaf.path) for leaf in subject.tensors]
    given = None if subject.spec.fixed else subject.options.dynamic_axes
    axes = given or dimtree.torchscript_axes(named.names, items)
    return program.torchscript(subject.module, subject.call, subject.options, named.names, axes), named.names


def _finish_captured(
    subject: Subject, captured: Captured, translated: Translated, reading: Reading, log: GuardLog
) -> Graph:
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


def _finish_traced(subject: Subject, model: ir.Model, names: Sequence[str]) -> Graph:
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
