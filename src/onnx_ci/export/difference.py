"""Whether two graphs are the same but for names, and the first node or constant at which they part.

Values are numbered by what they are computed of, in one table for both graphs: equal numbers, equal computation. Names,
the order of nodes and nodes that no output needs play no part; a constant counts by its content, wherever it is kept.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

_SHOWN_ELEMENTS = 8
_SHOWN_TEXT = 60


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two graphs part.

    Attributes:
        kind: "constant" is a value that a node takes; "edge" an input's or output's type, or their number.
        text: In words: what stands in the first graph "here", what in the second "there".
        here: A value that the node in the first graph makes, for the source map; None where it has no such node.
        there: Likewise in the second graph.
        here_nodes: How many nodes each graph has.
    """

    kind: str
    text: str
    here: str | None = None
    there: str | None = None
    here_nodes: int = 0
    there_nodes: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """A node as it is computed: its number, those of what it takes, and of its attributes."""

    node: ir.Node
    number: int
    takes: tuple[int, ...]
    constants: dict[int, ir.TensorProtocol]
    attributes: dict[str, Any]

    @property
    def operator(self) -> tuple[str, str]:
        return self.node.domain, self.node.op_type

    @property
    def moving(self) -> tuple[int, ...]:
        """The numbers of what it takes that is no constant, in order."""
        return tuple(number for at, number in enumerate(self.takes) if at not in self.constants)

    @property
    def makes(self) -> str | None:
        return next((value.name for value in self.node.outputs if value.name), None)


def first_difference(here: ir.Model, there: ir.Model) -> Difference | None:
    """Compares two graphs; None where they are the same."""
    table: dict[Any, int] = {}
    one, other = _Reader(here, table), _Reader(there, table)
    ends, other_ends = one.read(), other.read()
    counts = (len(one.steps), len(other.steps))
    edges = _edges(here, there)
    if ends == other_ends and not edges:
        return None
    known, other_known = one.numbers(), other.numbers()
    mine = next((step for step in one.steps if step.number not in other_known), None)
    theirs = [step for step in other.steps if step.number not in known]
    if mine is None and not theirs:
        text = edges or "the outputs are other values of one and the same graph"
        return Difference("edge", text, None, None, *counts)
    pair = _partner(mine, theirs, known) if mine is not None else theirs[0]
    kind, text = _told(mine, pair, known, other_known)
    return Difference(kind, text, mine.makes if mine else None, pair.makes if pair else None, *counts)


def _edges(here: ir.Model, there: ir.Model) -> str:
    """What differs in number, dtype and static sizes of the inputs; of outputs the number, since sizes follow."""
    if len(here.graph.outputs) != len(there.graph.outputs):
        return f"{len(here.graph.outputs)} outputs here, {len(there.graph.outputs)} there"
    one, other = ({str(value.name): _form(value) for value in model.graph.inputs} for model in (here, there))
    for name in one.keys() | other.keys():
        if one.get(name) != other.get(name):
            mine, theirs = (f"{known[name]}" if name in known else "is not there" for known in (one, other))
            return f"the input {name} is {mine} here, {theirs} there"
    return ""


def _form(value: ir.Value) -> str:
    sizes = [] if value.shape is None else [str(size) if isinstance(size, int) else "?" for size in value.shape]
    return f"{value.dtype.name if value.dtype else value.type}[{', '.join(sizes)}]"


def _partner(mine: _Step, theirs: Sequence[_Step], known: set[int]) -> _Step | None:
    """The node of the other graph that stands where this one does: of the same operator, if one takes the same."""
    shares = [step for step in theirs if step.operator == mine.operator and set(step.moving) & set(mine.moving)]
    first = [step for step in theirs if all(number in known for number in step.moving)]
    alike = [step for step in first if step.operator == mine.operator]
    return next(iter([*shares, *alike, *first]), None)


def _told(mine: _Step | None, pair: _Step | None, known: set[int], other_known: set[int]) -> tuple[str, str]:
    if mine is None or pair is None:
        step = mine or pair
        assert step is not None  # a difference has one side at least
        return "operator", f"{step.node.op_type} stands {'here' if mine else 'there'} only"
    if mine.operator != pair.operator or len(mine.takes) != len(pair.takes):
        return "operator", f"{_called(mine, known)} here, {_called(pair, other_known)} there"
    op = mine.node.op_type
    for at, (one, other) in enumerate(zip(mine.takes, pair.takes, strict=True)):
        if one != other:
            if at not in mine.constants and at not in pair.constants:
                return "operator", f"{op} takes another value at place {at}"
            here, there = (_shown(step.constants.get(at)) for step in (mine, pair))
            more = " with other values" if here == there else ""
            return "constant", f"{op} takes {here} here, {there}{more} there"
    for name in sorted(mine.attributes.keys() | pair.attributes.keys()):
        if mine.attributes.get(name) != pair.attributes.get(name):
            here, there = (_attribute(step.node, name) for step in (mine, pair))
            return "attribute", f"{op} has {name} = {here} here, {there} there"
    return "operator", f"{op} makes another number of values"


def _called(step: _Step, other: set[int]) -> str:
    new = [tensor for at, tensor in step.constants.items() if step.takes[at] not in other]
    return f"{step.node.op_type}({', '.join(map(_shown, new))})" if new else step.node.op_type


def _shown(tensor: ir.TensorProtocol | None) -> str:
    """A constant in words: its elements where they are few, else dtype and shape."""
    if tensor is None:
        return "a computed value"
    if 0 < tensor.size <= _SHOWN_ELEMENTS and len(tensor.shape) <= 1:
        return _plain(tensor.numpy().tolist())
    return f"{tensor.dtype.name.lower()}{list(map(int, tensor.shape.numpy()))}"


def _attribute(node: ir.Node, name: str) -> str:
    found = node.attributes.get(name)
    if found is None:
        return "nothing"
    value = found.value
    if isinstance(value, ir.Graph):
        return "a graph"
    if isinstance(value, ir.TensorProtocol):
        return _shown(value)
    return _plain(list(value) if isinstance(value, (list, tuple)) else value)


def _plain(value: Any) -> str:
    """Numbers with four digits, cut where the list is long."""
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"[:_SHOWN_TEXT]
    return f"{value:.4g}" if isinstance(value, float) else str(value)[:_SHOWN_TEXT]


@dataclass(slots=True)
class _Reader:
    """Numbers the values of one model; `table` is shared, so that equal computations have equal numbers."""

    model: ir.Model
    table: dict[Any, int]
    steps: list[_Step] = field(default_factory=list)
    values: dict[int, int] = field(default_factory=dict)
    bodies: dict[Any, int] = field(default_factory=dict)

    def read(self) -> tuple[int, ...]:
        """Numbers everything; gives the numbers of the outputs."""
        for value in self.model.graph.inputs:
            self.values[id(value)] = self._number("input", value.name)
        return self._nodes(self.model.graph, self.model.graph.outputs)

    def numbers(self) -> set[int]:
        """Of nodes, and of all that they take."""
        return {number for step in self.steps for number in (step.number, *step.takes)}

    def _number(self, *key: Any) -> int:
        return self.table.setdefault(key, len(self.table))

    def _nodes(self, graph: ir.Graph | ir.Function, outputs: Sequence[ir.Value]) -> tuple[int, ...]:
        for node in graph:
            if not _is_constant(node):
                self._step(node)
        return tuple(self._value(value)[0] for value in outputs)

    def _step(self, node: ir.Node) -> None:
        taken = [self._value(value) for value in node.inputs]
        takes = tuple(number for number, _ in taken)
        attributes = {name: self._frozen(attribute) for name, attribute in node.attributes.items()}
        key = (*node.op_identifier(), self._body(node), tuple(sorted(attributes.items())), takes, len(node.outputs))
        number = self._number("node", *key)
        constants = {at: tensor for at, (_, tensor) in enumerate(taken) if tensor is not None}
        self.steps.append(_Step(node, number, takes, constants, attributes))
        for at, value in enumerate(node.outputs):
            # The first output has its node's own number, so that a taken value is known as the node that makes it.
            self.values[id(value)] = number if at == 0 else self._number("output", number, at)

    def _value(self, value: ir.Value | None) -> tuple[int, ir.TensorProtocol | None]:
        if value is None:
            return self._number("nothing"), None
        known = self.values.get(id(value))
        producer = value.producer()
        if known is not None and producer is not None and not _is_constant(producer):
            return known, None
        tensor = ir.convenience.get_const_tensor(value)
        if tensor is None:
            return (known if known is not None else self._number("unknown", value.name)), None
        if known is None:
            known = self.values[id(value)] = self._constant(tensor)
        return known, tensor

    def _constant(self, tensor: ir.TensorProtocol) -> int:
        if tensor.dtype == ir.DataType.STRING:
            content: bytes = repr(tensor.numpy().tolist()).encode()
        else:
            content = tensor.tobytes()
        digest = hashlib.blake2b(content, digest_size=16).digest()
        return self._number("constant", tensor.dtype, tuple(tensor.shape.numpy()), digest)

    def _frozen(self, attribute: ir.Attr) -> Any:
        if attribute.is_ref():
            return "ref", attribute.ref_attr_name
        value: Any = attribute.value
        kind = attribute.type.name
        if isinstance(value, ir.Graph):
            return kind, self._inner(value)
        if kind == "GRAPHS":
            return kind, tuple(self._inner(graph) for graph in value)
        if isinstance(value, ir.TensorProtocol):
            return kind, self._constant(value)
        if kind in ("FLOAT", "FLOATS"):  # a file holds them in 32 bits, the exporter in 64
            numbers = value if isinstance(value, (list, tuple)) else [value]
            return kind, struct.pack(f"{len(numbers)}f", *numbers)
        if isinstance(value, (list, tuple)):
            return kind, tuple(map(str, value))
        return kind, str(value)

    def _inner(self, graph: ir.Graph) -> int:
        for at, value in enumerate(graph.inputs):
            self.values[id(value)] = self._number("inner input", at, len(graph.inputs))
        return self._number("graph", self._nodes(graph, graph.outputs))

    def _body(self, node: ir.Node) -> int | None:
        """The number of a function's body, where the model has one of its own for this operator."""
        name = node.op_identifier()
        function = self.model.functions.get(name)
        if function is None:
            return None
        if name not in self.bodies:
            self.bodies[name] = -1
            for at, value in enumerate(function.inputs):
                self.values[id(value)] = self._number("parameter", at, name)
            self.bodies[name] = self._number("function", self._nodes(function, function.outputs))
        return self.bodies[name]


def _is_constant(node: ir.Node) -> bool:
    return node.op_type == "Constant" and node.domain == ""
