"""Which values of a model come from which, and a part of it as a model of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import external_data_helper

from onnx_ci.artifact.tensors import Value

_LARGEST = 256 << 20
"""Bytes of weights that a part may have as a model of its own."""


class NotExtracted(Exception):
    """A part of a model can't stand alone; the text says why."""


@dataclass(frozen=True, slots=True)
class Region:
    """The nodes between some values and one that they make, in the model's order, and the values that go in."""

    value: str
    nodes: list[onnx.NodeProto]
    inputs: list[str]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a model as a model of its own, with one output, and what goes in and should come out."""

    model: onnx.ModelProto
    inputs: dict[str, Value]
    expected: Value
    actual: Value


class Dataflow:
    """The values of a model's main graph. What is inside a branch or a loop belongs to the node that holds it."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.order: list[str] = [name for node in model.graph.node for name in node.output if name]
        self._maker = {name: at for at, node in enumerate(model.graph.node) for name in node.output if name}
        self._reads = [list(dict.fromkeys(_reads(node))) for node in model.graph.node]
        self._fixed = {item.name for item in model.graph.initializer}
        self._fixed |= {item.values.name for item in model.graph.sparse_initializer}

    def node_of(self, value: str) -> onnx.NodeProto | None:
        """The node that makes a value; None for inputs and weights."""
        return self.model.graph.node[self._maker[value]] if value in self._maker else None

    def region(self, value: str, stops: Collection[str]) -> Region:
        """What makes a value out of the nearest of `stops` and of inputs of the model."""
        nodes, inputs = set[int](), dict[str, None]()
        todo = [value]
        while todo:
            name = todo.pop()
            at = self._maker.get(name)
            if at is None:
                if name not in self._fixed:
                    inputs[name] = None
            elif name != value and name in stops:
                inputs[name] = None
            elif at not in nodes:
                nodes.add(at)
                todo += self._reads[at]
        order = {name: at for at, name in enumerate([*(item.name for item in self.model.graph.input), *self.order])}
        return Region(
            value=value,
            nodes=[self.model.graph.node[at] for at in sorted(nodes)],
            inputs=sorted(inputs, key=lambda name: order.get(name, -1)),
        )

    def parents(self, names: Collection[str]) -> dict[str, list[str]]:
        """For each of the values the nearest of them above it."""
        nearest: dict[str, dict[str, None]] = {}
        known = set(names)

        def seen_from(name: str) -> dict[str, None]:
            return {name: None} if name in known else nearest.get(name, {})

        found = {}
        for node, reads in zip(self.model.graph.node, self._reads, strict=True):
            above: dict[str, None] = {}
            for name in reads:
                above.update(seen_from(name))
            for name in node.output:
                nearest[name] = above
                if name in known:
                    found[name] = list(above)
        return {name: found.get(name, []) for name in names}

    def submodel(self, region: Region, inputs: Mapping[str, Value], output: Value, folder: Path) -> onnx.ModelProto:
        """A region as a model that needs no other file.

        Args:
            region: The part.
            inputs: A value for each of the region's inputs, for their types.
            output: What the part should give, for its type.
            folder: Where the model's external data lies.

        Raises:
            NotExtracted: A value has no tensor type, or the weights are too large.
        """
        read = {name for node in region.nodes for name in _reads(node)}
        weights = [onnx.TensorProto.FromString(item.SerializeToString()) for item in self._weights(read, folder)]
        graph = onnx.helper.make_graph(
            region.nodes,
            "part",
            [_typed(name, inputs[name]) for name in region.inputs],
            [_typed(region.value, output)],
            weights,
        )
        made = onnx.helper.make_model(
            graph,
            opset_imports=self.model.opset_import,
            functions=self.model.functions,
            ir_version=self.model.ir_version,
        )
        made.producer_name = "onnx-ci"
        return made

    def _weights(self, names: Collection[str], folder: Path) -> Iterator[onnx.TensorProto]:
        total = 0
        for item in self.model.graph.initializer:
            if item.name in names:
                total += _bytes_of(item)
                if total > _LARGEST:
                    raise NotExtracted(f"its weights have more than {_LARGEST >> 20} MiB")
                loaded = onnx.TensorProto.FromString(item.SerializeToString())
                if external_data_helper.uses_external_data(loaded):
                    external_data_helper.load_external_data_for_tensor(loaded, str(folder))
                    loaded.data_location = onnx.TensorProto.DEFAULT
                    del loaded.external_data[:]
                yield loaded


def _bytes_of(item: onnx.TensorProto) -> int:
    count = int(np.prod(item.dims, dtype=np.float64)) if item.dims else 1
    return count * max(1, onnx.helper.tensor_dtype_to_np_dtype(item.data_type).itemsize)


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """What a node takes, and what the graphs inside it take from around them."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        graphs = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else list(attribute.graphs)
        for graph in graphs:
            own = {item.name for item in (*graph.input, *graph.initializer)}
            for inner in graph.node:
                yield from (name for name in _reads(inner) if name not in own)
                own.update(inner.output)
            yield from (item.name for item in graph.output if item.name not in own)


def _typed(name: str, value: Value) -> onnx.ValueInfoProto:
    if not isinstance(value, np.ndarray):
        raise NotExtracted(f"{name} is no tensor")
    kind = onnx.TensorProto.STRING if value.dtype.kind in "OUS" else onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    return onnx.helper.make_tensor_value_info(name, kind, list(value.shape))


def with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> bytes:
    """The model with these inner values as outputs beside its own."""
    own = {item.name for item in model.graph.output}
    added = [onnx.ValueInfoProto(name=name) for name in names if name not in own]
    kept = len(model.graph.output)
    model.graph.output.extend(added)
    try:
        return bytes(model.SerializeToString())
    finally:
        del model.graph.output[kept:]
