"""Turns a captured program (or, with the older exporter, a module) into an ONNX graph in memory."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import torch

from onnx_ci.export import private, traced
from onnx_ci.export.capture import Captured
from onnx_ci.export.options import Options
from onnx_ci.export.quiet import quiet
from onnx_ci.export.types import Call

Look = Callable[[torch.export.ExportedProgram], None]


@dataclass(frozen=True, slots=True)
class Translated:
    """A graph, the decomposed program that it was translated from, and the graph as the exporter's optimizer found it.

    Attributes:
        program: The graph's values have its names.
        unoptimized: It shares the graph's weights; None where this onnx_ir can't copy the graph without them.
    """

    model: ir.Model
    program: torch.export.ExportedProgram
    unoptimized: ir.Model | None


def translate(
    captured: Captured, options: Options, symbols: Mapping[str, str], look: Look = lambda _: None
) -> Translated:
    """Decomposes, translates and optimizes a captured program.

    Names are not handed to the exporter: it gives an input that is also an output one name twice, and drops the names
    of dims when the arguments hold a None.

    Args:
        captured: By `capture`.
        options: How to export.
        symbols: The declared dim name of each FX symbol.
        look: Sees the decomposed program before it is translated, unless the capture was the public call's.

    Raises:
        Exception: Whatever the exporter raised.
    """
    given: dict[str, Any] = {"opset_version": options.opset, **options.handed_on}
    with (
        quiet(private.REGISTRY_LOGGER, logging.ERROR),
        private.parsed_once(),
        _without_constants(captured.program),
        private.before_translation(look),
    ):
        done: Any = captured.onnx_program or torch.onnx.export(
            captured.program, (), dynamo=True, optimize=False, verbose=False, **given
        )
        before = _copied(done.model)
        if options.optimize:
            done.optimize()
        if symbols:
            done.rename_axes({old: new if new.isidentifier() else f"({new})" for old, new in symbols.items()})
            _without_brackets([*done.model.graph.inputs, *done.model.graph.outputs])
    return Translated(done.model, done.exported_program, before)


def _without_brackets(edges: Iterable[ir.Value]) -> None:
    """Inside an expression, an expression that stands for a symbol needs brackets; as a whole axis it needs none."""
    for value in edges:
        for at, size in enumerate(value.shape or ()):
            if not isinstance(size, int) and size.value:
                value.shape[at] = traced.bare(size.value)  # type: ignore[index] # of a value that has a shape


def _copied(model: ir.Model) -> ir.Model | None:
    try:
        return model.clone()
    except Exception:  # an onnx_ir without it, or a graph that it can't copy: `parity.translation` is then not judged
        return None


def torchscript(
    module: torch.nn.Module, call: Call, options: Options, names: Sequence[str], axes: Mapping[str, Any]
) -> ir.Model:
    """Traces a module with the older exporter, in its own default mode: it bakes eval mode unless told otherwise.

    Args:
        module: As the entrypoint gave it.
        call: The example.
        options: How to export.
        names: The file's input names, in the order of the flattened tensors.
        axes: Dynamic axes by input name.

    Raises:
        Exception: Whatever the exporter raised.
    """
    args: tuple[Any, ...] = (*call.args, dict(call.kwargs)) if call.kwargs else call.args
    if args and isinstance(args[-1], dict) and not call.kwargs:
        args = (*args, {})  # a dict in the last place would be taken for keywords
    with quiet(private.REGISTRY_LOGGER, logging.ERROR), tempfile.TemporaryDirectory(prefix="onnx-ci-") as folder:
        path = Path(folder) / "traced.onnx"
        torch.onnx.export(
            module,
            args,
            str(path),
            dynamo=False,
            input_names=list(names),
            dynamic_axes=dict(axes) or None,
            opset_version=options.opset,
            **options.handed_on,
        )
        return ir.serde.deserialize_model(onnx.load(str(path)))  # weights in memory: the folder goes


def fix_outputs(model: ir.Model) -> None:
    """Gives each output a value of its own: one that is an input, or that is returned twice, gets an Identity."""
    graph = model.graph
    taken = {id(value) for value in graph.inputs} | {id(value) for value in graph.initializers.values()}
    for place, value in enumerate(list(graph.outputs)):
        if id(value) in taken:
            node = ir.Node("", "Identity", [value], name=f"{value.name}_output_{place}")
            (copy,) = node.outputs
            copy.name, copy.type, copy.shape = f"{value.name}_{place}", value.type, value.shape
            graph.append(node)
            graph.outputs[place] = copy
        else:
            taken.add(id(value))


def arrange(values: Any, order: Sequence[int], names: Sequence[str]) -> None:
    """Puts a graph's inputs or outputs in order and names them."""
    chosen = [values[at] for at in order]
    if order != list(range(len(values))):
        values.clear()
        values.extend(chosen)
    for value, name in zip(chosen, names, strict=True):
        value.name = name


def free_names(model: ir.Model, wanted: Sequence[str]) -> None:
    """Renames inner values and initializers that would clash with the names of inputs and outputs."""
    graph = model.graph
    edge = {id(value) for value in (*graph.inputs, *graph.outputs)}
    reserved = set(wanted)
    for value in list(graph.initializers.values()):
        if value.name in reserved and id(value) not in edge:
            value.name = f"{value.name}_weight"
    for node in nodes(model):
        for value in node.outputs:
            if value.name in reserved and id(value) not in edge:
                value.name = f"{value.name}_inner"


def nodes(model: ir.Model) -> Iterator[ir.Node]:
    """Every node: of the graph, its subgraphs and the model's functions."""
    graphs: list[Any] = [model.graph, *model.functions.values()]
    for graph in graphs:
        yield from ir.traversal.RecursiveGraphIterator(graph)


def opset_of(model: ir.Model) -> int:
    """The version of ai.onnx that the file asks for."""
    return int(model.opset_imports.get("", 0))


@contextmanager
def _without_constants(program: torch.export.ExportedProgram) -> Iterator[None]:
    """Hides outputs that are Python numbers or texts: the exporter stops at those, and leaves out what is None."""
    constant = torch.export.graph_signature.ConstantArgument
    hidden = [spec for spec in program.graph_signature.output_specs if isinstance(spec.arg, constant)]
    kept = [spec.arg for spec in hidden]
    (node,) = (node for node in program.graph.nodes if node.op == "output")
    returned = node.args
    node.args = (tuple(value if isinstance(value, torch.fx.Node) else None for value in returned[0]),)
    for spec in hidden:
        spec.arg = constant(name="", value=None)
    try:
        yield
    finally:
        node.args = returned
        for spec, argument in zip(hidden, kept, strict=True):
            spec.arg = argument
