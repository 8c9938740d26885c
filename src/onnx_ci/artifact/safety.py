"""Whether reading a model file stays inside its folder: external data is checked before anything opens it.

Sources: CVE-2022-25882, CVE-2024-27318, CVE-2024-5187, CVE-2025-51480, CVE-2026-27489, CVE-2026-34445, CVE-2026-34446.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx

_KEYS = {"location", "offset", "length", "checksum"}
_NUMBER = re.compile(r"[0-9]{1,18}")  # what int() takes besides, other readers may read in another way


def external_data_problems(model_path: Path) -> list[str]:
    """Says of each external tensor what is wrong with where it lies, in a sentence; empty when all is well.

    The weights are not read. A location must name a regular file in the model's own folder, without a link in between
    (hard links too: ONNX Runtime follows them), and offset and length must lie inside it.
    """
    if model_path.is_symlink() or not model_path.is_file():
        return [f"{model_path.name} is a link or no regular file"]
    folder = model_path.parent.resolve()
    model = onnx.load(str(model_path), load_external_data=False)
    problems: dict[str, None] = {}
    for tensor in all_tensors(model):
        if _is_external(tensor):
            problem = _problem(folder, tensor)
            if problem:
                problems[problem] = None
    return list(problems)


def external_files(model: onnx.ModelProto) -> list[str]:
    """The locations of external data, each once, in order."""
    found: dict[str, None] = {}
    for tensor in all_tensors(model):
        if _is_external(tensor):
            found[_entries(tensor).get("location", "")] = None
    return list(found)


def all_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every tensor of a model: initializers, attributes, subgraphs, functions and their defaults, sparse parts."""
    yield from _graph_tensors(model.graph)
    for training in model.training_info:
        yield from _graph_tensors(training.initialization)
        yield from _graph_tensors(training.algorithm)
    for function in model.functions:
        yield from _attribute_tensors(function.attribute_proto)
        for node in function.node:
            yield from _attribute_tensors(node.attribute)


def _graph_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices
    for node in graph.node:
        yield from _attribute_tensors(node.attribute)


def _attribute_tensors(attributes: Iterable[onnx.AttributeProto]) -> Iterator[onnx.TensorProto]:
    for attribute in attributes:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        for sparse in [
            *attribute.sparse_tensors,
            *([attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []),
        ]:
            yield sparse.values
            yield sparse.indices
        for graph in [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]:
            yield from _graph_tensors(graph)


def _is_external(tensor: onnx.TensorProto) -> bool:
    """By its location, or by having entries at all: readers differ in which of the two they look at."""
    return tensor.data_location == onnx.TensorProto.EXTERNAL or len(tensor.external_data) > 0


def _entries(tensor: onnx.TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def _problem(folder: Path, tensor: onnx.TensorProto) -> str:
    entries = _entries(tensor)
    if len(entries) != len(tensor.external_data) or not entries.keys() <= _KEYS:
        return f"{tensor.name}: its external data has a key twice, or one that is not known"
    location = entries.get("location", "")
    if not location or "\0" in location or os.path.isabs(location) or "\\" in location or ":" in location:
        return f"{tensor.name}: the location {location!r} is not a relative path"
    path = folder / location
    if Path(os.path.normpath(path)) != path or folder not in path.parents:
        return f"{tensor.name}: the location {location!r} leaves the model's folder"
    try:
        found = os.lstat(path)
    except OSError:
        return f"{location} is missing: the weights of {tensor.name} and others lie in it"
    if not stat.S_ISREG(found.st_mode) or path.resolve() != path:
        return f"{location} is a link or no regular file"
    if found.st_nlink > 1:
        return f"{location} is a hard link ({found.st_nlink} names)"
    numbers = [entries.get("offset", "0"), entries.get("length", "0")]
    if not all(_NUMBER.fullmatch(number) for number in numbers):
        return f"{tensor.name}: offset or length is not a number"
    offset, length = map(int, numbers)
    if offset + length > found.st_size:
        return f"{tensor.name}: bytes {offset} to {offset + length} lie outside {location} ({found.st_size} bytes)"
    return ""
