"""Whether a file carries paths or source text of the machine that built it: rule structure.local-path.

Names of nodes and values are not read: the TorchScript exporter's look like paths and are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import onnx

from onnx_ci.artifact import graph, layout
from onnx_ci.records.result import Finding, finding

_STACK = re.compile(r'File "[^"]+", line \d+|^\s*/?\S+\.py\(\d+\): ', re.MULTILINE)
_BEFORE = r"(?:^|[\s\"'(=:]|file://)"  # an address of the web is no path: its slashes are two, or follow a name
_SOURCE_PATH = re.compile(_BEFORE + r"(?:[A-Za-z]:[\\/]|/(?!/))[^\s\"':]*\.(?:py|pyi|cpp|cc|cu)\b")
_HOME_PATH = re.compile(_BEFORE + r"(?:[A-Za-z]:\\|/(?:home|Users|root|tmp|mnt|opt|var|srv|data)/)[^\s\"']+")


def judge(model: onnx.ModelProto) -> Finding:
    """Fails on stack traces and paths of source files; warns of strings that merely look like a path."""
    leaks: dict[str, str] = {}
    suspects: dict[str, str] = {}
    for place, text in _texts(model):
        if _STACK.search(text) or _SOURCE_PATH.search(text):
            leaks.setdefault(place, text)
        elif match := _HOME_PATH.search(text):
            suspects.setdefault(place, match.group().strip())
    if leaks:
        place, text = next(iter(leaks.items()))
        return finding(
            "structure.local-path",
            "fail",
            layout.MODEL,
            f"{place} holds source text or paths of the machine that built it: {one_line(text)[:160]}",
            hint="onnx-ci strips these when it exports; was the file written by another tool afterwards?",
            data={"places": list(leaks)[:50], "count": len(leaks)},
        )
    if suspects:
        place, text = next(iter(suspects.items()))
        message = f"{place} holds what looks like a local path: {text[:160]}"
        return finding("structure.local-path", "warn", layout.MODEL, message, data={"places": list(suspects)[:50]})
    return finding("structure.local-path", "pass", layout.MODEL, "no local paths and no source text in the file")


def _texts(model: onnx.ModelProto) -> Iterator[tuple[str, str]]:
    """Every free text of a file with where it stands; names of nodes and values are not texts."""
    yield from _texts_of("the model", model)
    yield from _texts_of("the graph", model.graph)
    for item in [*model.graph.input, *model.graph.output, *model.graph.value_info, *model.graph.initializer]:
        yield from _texts_of(f"value {item.name}", item)
    for function in model.functions:
        yield from _texts_of(f"function {function.name}", function)
    for node in graph.all_nodes(model):
        yield from _texts_of(f"node {node.name or node.op_type}", node)
        for inner in graph.subgraphs(node):
            yield from _texts_of(f"a graph inside node {node.name or node.op_type}", inner)


def _texts_of(
    place: str,
    item: onnx.ModelProto
    | onnx.GraphProto
    | onnx.NodeProto
    | onnx.FunctionProto
    | onnx.ValueInfoProto
    | onnx.TensorProto,
) -> Iterator[tuple[str, str]]:
    if item.doc_string:
        yield f"the doc string of {place}", item.doc_string
    for entry in getattr(item, "metadata_props", []):
        yield f"metadata {entry.key} of {place}", entry.value


def one_line(error: object) -> str:
    """A text in one line of bounded length."""
    return " ".join(str(error).split())[:600]
