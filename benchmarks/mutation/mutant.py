"""What a mutant is, and how the constants and attributes of a graph are read and changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Change = Callable[[ModelProto], None]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault.

    Attributes:
        kind: What sort of fault, "stride" say.
        node: Name of the node that it is in, or that first reads the changed constant; "" for the graph's outputs.
        operator: That node's operator; "" for the graph's outputs.
        what: What changed, in words.
        change: Makes it in a copy of the model that it was found in.
    """

    kind: str
    node: str
    operator: str
    what: str
    change: Change

    def of(self, model: ModelProto) -> ModelProto:
        """The faulty model; the sound one stays as it is."""
        copy = ModelProto()
        copy.CopyFrom(model)
        self.change(copy)
        return copy


@dataclass(frozen=True, slots=True)
class Site:
    """A node of the main graph with its place in it."""

    at: int
    node: NodeProto

    def mutant(self, kind: str, what: str, change: Callable[[NodeProto], None]) -> Mutant:
        """A fault in this node itself."""
        return Mutant(kind, self.node.name, self.node.op_type, what, lambda model: change(model.graph.node[self.at]))

    def set_attribute(self, kind: str, name: str, old: object, new: object) -> Mutant:
        """One attribute has another value."""
        return self.mutant(kind, f"{name} {old} → {new}", lambda node: put_attribute(node, name, new))


class Graph:
    """The main graph of a model with its weights in it, as the mutators look at it."""

    def __init__(self, model: ModelProto) -> None:
        self.model = model
        self.sites = [Site(at, node) for at, node in enumerate(model.graph.node)]
        self._tensors = {tensor.name: tensor for tensor in constants(model)}
        self._readers: dict[str, Site] = {}
        for site in self.sites:
            for name in site.node.input:
                self._readers.setdefault(name, site)

    def constant(self, name: str) -> np.ndarray | None:
        """The value of a constant; None for what is computed."""
        tensor = self._tensors.get(name)
        return None if tensor is None else numpy_helper.to_array(tensor)

    def read_constants(self) -> Iterator[tuple[str, np.ndarray, Site]]:
        """Each constant that a node of the main graph reads, with the first such node."""
        for name in self._tensors:
            if name in self._readers:
                yield name, numpy_helper.to_array(self._tensors[name]), self._readers[name]

    def readers(self, name: str) -> list[tuple[Site, int]]:
        """Who reads a value, and as which of its inputs."""
        return [(site, at) for site in self.sites for at, value in enumerate(site.node.input) if value == name]

    def set_constant(self, kind: str, name: str, new: np.ndarray, what: str, site: Site | None = None) -> Mutant:
        """A constant has another value."""
        reader = site or self._readers[name]
        return Mutant(kind, reader.node.name, reader.node.op_type, what, lambda model: put_constant(model, name, new))


def constants(model: ModelProto) -> Iterator[TensorProto]:
    """Initializers and the tensors of Constant nodes, these under the name of their value."""
    yield from model.graph.initializer
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            tensor = TensorProto()
            tensor.CopyFrom(node.attribute[0].t)
            tensor.name = node.output[0]
            yield tensor


def put_constant(model: ModelProto, name: str, value: np.ndarray) -> None:
    """Gives a constant another value."""
    tensor = numpy_helper.from_array(np.ascontiguousarray(value), name)
    for initializer in model.graph.initializer:
        if initializer.name == name:
            initializer.CopyFrom(tensor)
            return
    node = next(node for node in model.graph.node if name in node.output)
    put_attribute(node, "value", tensor)


def attribute(node: NodeProto, name: str, default: Any = None) -> Any:
    """The value of an attribute."""
    found = next((one for one in node.attribute if one.name == name), None)
    return default if found is None else onnx.helper.get_attribute_value(found)


def put_attribute(node: NodeProto, name: str, value: object) -> None:
    """Sets an attribute, which may be absent."""
    kept = [one for one in node.attribute if one.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])
