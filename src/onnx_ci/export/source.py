"""Where each value of a graph came from, kept beside the file; and the file without it."""

from __future__ import annotations

import ast
from typing import Any

import onnx_ir as ir

from onnx_ci.export import program
from onnx_ci.export.places import Places
from onnx_ci.records.source_map import SCHEMA_VERSION, Origin, SourceMap

_STACK = "pkg.torch.onnx.stack_trace"
_SCOPES = "pkg.torch.onnx.name_scopes"
_FX = "pkg.torch.onnx.fx_node"
_RULE = "pkg.onnxscript.rewriter.rule_name"


def source_map(model: ir.Model, places: Places) -> SourceMap:
    """Reads the exporter's notes on each node, by the name of the value that it makes."""
    values = {}
    for node in program.nodes(model):
        made = origin(node, places)
        values.update({value.name: made for value in node.outputs if value.name})
    return SourceMap(schema_version=SCHEMA_VERSION, values=values)


def strip(model: ir.Model) -> None:
    """Takes the exporter's notes out: they hold absolute paths and source text, and make equal graphs unequal bytes."""
    model.metadata_props.clear()
    model.doc_string = None
    graphs: list[Any] = [model.graph, *model.functions.values()]
    containers: list[Any] = [*graphs, *model.graph.initializers.values()]
    for node in program.nodes(model):
        containers.append(node)
        containers.extend(value for value in (*node.inputs, *node.outputs) if value is not None)
        if node.graph is not None:
            containers.append(node.graph)
    for graph in graphs:
        containers.extend([*graph.inputs, *graph.outputs])
    for item in containers:
        item.metadata_props.clear()
        item.doc_string = None


def origin(node: ir.Node, places: Places) -> Origin:
    """What the exporter noted on a node, until `strip` takes it out."""
    notes = node.metadata_props
    place = places.of_stack_text(notes.get(_STACK, ""))
    return Origin(
        node=node.name or "",
        op=f"{node.domain}::{node.op_type}" if node.domain else node.op_type,
        file=place.file if place else None,
        line=place.line if place and place.file else None,
        module=_module(notes.get(_SCOPES, "")),
        fx=_fx_name(notes.get(_FX, "")),
        rewrite=notes.get(_RULE, ""),
    )


def _module(text: str) -> str:
    """The path of the submodule, from a list that ends in the node's own name: ``['', 'net', 'net.0', 'relu']``."""
    try:
        scopes = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return ""
    return str(scopes[-2]) if isinstance(scopes, list) and len(scopes) > 1 else ""


def _fx_name(text: str) -> str:
    return text.partition(" ")[0].lstrip("%").rstrip(":")
