"""A digest of a program as torch.export captured it, of all that its translation reads: equal ones give equal graphs.

Names play no part; constants count by content, symbolic sizes by the place they first stand at. The translation sees of
a size whether it is a number or an expression, never the example's own: see docs/decisions/second-export.md.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from typing import Any

import torch

from onnx_ci.export import private, state

_PLAIN = (bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format, type(None))


class _Unreadable(Exception):
    """Something in the program has no plain form."""


def captured(program: torch.export.ExportedProgram, labels: Sequence[str]) -> str:
    """The digest of a program before decomposition, with what is assumed of its sizes; "" where it can't be told.

    Where decomposing took no decision on sizes, equal ones decompose alike.

    Args:
        program: By `torch.export.export`.
        labels: What else the graph depends on: the paths of its inputs, the keys of its outputs.
    """
    assumed = private.assumptions(program)
    return _digest("captured", program, labels, assumed) if assumed is not None else ""


def decomposed(program: torch.export.ExportedProgram, labels: Sequence[str]) -> str:
    """The digest of a program as it is translated; "" where it can't be told. `labels` as above."""
    return _digest("decomposed", program, labels, private.Assumptions())


def _digest(
    kind: str, program: torch.export.ExportedProgram, labels: Sequence[str], assumed: private.Assumptions
) -> str:
    try:
        read = _Reader(program).read(assumed)
    except Exception:  # a layout, a symbol, a version of torch that is not known here costs the short cut alone
        return ""
    return f"{kind} {hashlib.sha256(repr((list(labels), read)).encode()).hexdigest()}"


class _Reader:
    """Reads one program, subgraphs included: each node by its number, and what it takes by theirs."""

    def __init__(self, program: torch.export.ExportedProgram) -> None:
        self._program = program
        self._symbols: dict[Any, Any] = {}
        self._nodes: dict[torch.fx.Node, int] = {}

    def read(self, assumed: private.Assumptions) -> list[Any]:
        nodes = self._graph(self._program.graph_module, self._root_placeholders())
        specs = self._program.graph_signature.output_specs
        returned = [(spec.kind.name, self._constant(spec.arg)) for spec in specs]
        conditions = sorted(self._renamed(one) for one in assumed.conditions)
        ranges = sorted((self._renamed(symbol), str(ends)) for symbol, ends in assumed.ranges.items())
        return [nodes, returned, conditions, ranges]

    def _constant(self, argument: Any) -> Any:
        """The value of a Python constant among inputs or outputs; the kind of any other."""
        constant = isinstance(argument, torch.export.graph_signature.ConstantArgument)
        return self._plain(argument.value) if constant else type(argument).__name__

    def _root_placeholders(self) -> list[Any]:
        """For each placeholder what it stands for: an input, or a constant's content."""
        inputs = torch.export.graph_signature.InputKind.USER_INPUT
        known = {**self._program.state_dict, **self._program.constants}
        found: list[Any] = []
        for spec in self._program.graph_signature.input_specs:
            if spec.kind == inputs:
                found.append(("input", self._constant(spec.arg)))
                continue
            value = known.get(spec.target or "")
            content = state.content(value) if isinstance(value, torch.Tensor) else None
            if content is None:
                raise _Unreadable
            found.append((spec.kind.name, content))
        return found

    def _graph(self, module: torch.fx.GraphModule, placeholders: Sequence[Any] = ()) -> list[Any]:
        found: list[Any] = []
        stands = iter(placeholders)
        for node in module.graph.nodes:
            what: Any = None
            if node.op == "placeholder":
                what = next(stands, None)
            elif node.op == "get_attr":
                inner = getattr(module, str(node.target), None)
                if not isinstance(inner, torch.fx.GraphModule):
                    raise _Unreadable
                what = self._graph(inner)
            elif node.op == "call_function":
                what = _called(node.target)
            elif node.op != "output":
                raise _Unreadable
            arguments = (self._plain(node.args), self._plain(node.kwargs)) if node.op != "get_attr" else ()
            found.append((node.op, what, arguments, self._form(node.meta.get("val"))))
            self._nodes[node] = len(self._nodes)
        return found

    def _plain(self, value: Any) -> Any:
        if isinstance(value, torch.fx.Node):
            return "node", self._nodes[value]
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return "size", self._renamed(value.node.expr)
        if isinstance(value, (list, tuple)):
            return [self._plain(item) for item in value]
        if isinstance(value, dict):
            return sorted((str(key), self._plain(item)) for key, item in value.items())
        if isinstance(value, slice):
            return "slice", self._plain([value.start, value.stop, value.step])
        if isinstance(value, _PLAIN):
            return type(value).__name__, repr(value)
        raise _Unreadable

    def _form(self, value: Any) -> Any:
        """The type of a node's value; each size is a number or an expression."""
        if isinstance(value, torch.Tensor):
            if value.layout is not torch.strided:
                raise _Unreadable
            edges = [[self._plain(size) for size in sizes] for sizes in (value.shape, value.stride())]
            return "tensor", str(value.dtype), str(value.device), edges
        if isinstance(value, (list, tuple)):
            return [self._form(item) for item in value]
        return self._plain(value)

    def _renamed(self, expression: Any) -> str:
        """A sympy expression in symbols that are numbered as they are met."""
        for symbol in sorted(expression.free_symbols, key=str):
            if symbol not in self._symbols:
                kind = str(symbol).rstrip("0123456789")
                self._symbols[symbol] = type(symbol)(f"{kind}{len(self._symbols)}", **symbol.assumptions0)
        return str(expression.xreplace(self._symbols))


def _called(target: Any) -> str:
    """An operator's full name, or a Python function's."""
    name = f"{target.__module__}.{target.__qualname__}" if inspect.isroutine(target) else str(target)
    if " at 0x" in name or "<" in name:
        raise _Unreadable
    return name
