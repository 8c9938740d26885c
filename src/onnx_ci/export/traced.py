"""Sizes that torch traced, as sympy expressions: read from a program, printed in the contract's grammar, evaluated."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from onnx_ci.records.expression import UNKNOWN

_FLOOR_DIVISIONS = {"FloorDiv", "CleanDiv", "PythonFloorDiv"}
_RELATIONS = {
    "Equality": "==",
    "Unequality": "!=",
    "StrictLessThan": "<",
    "LessThan": "<=",
    "StrictGreaterThan": ">",
    "GreaterThan": ">=",
}
_LARGEST_DENOMINATOR = 64
_REMAINDERS = {"Mod", "PythonMod"}


def render(size: Any, names: Mapping[Any, str]) -> int | str:
    """Writes a size as the contract has it: a number, a dim name or an expression; "?" for what has no form there.

    Args:
        size: An int or a sympy expression of FX symbols.
        names: The declared name of each symbol.
    """
    if isinstance(size, int):
        return size
    if getattr(size, "is_Integer", False):
        return int(size)
    try:
        return bare(_Printer(names).sum(size))
    except _NoFormError:
        return UNKNOWN


def bounds(program: torch.export.ExportedProgram, symbols: Iterable[Any]) -> list[Any]:
    """The ends of each symbol's range as conditions, where the capture narrowed it; 0 and 1 it always sets apart."""
    sympy = importlib.import_module("sympy")
    found: list[Any] = []
    for symbol in symbols:
        ends = program.range_constraints.get(symbol)
        if ends is not None and getattr(ends.lower, "is_Integer", False) and ends.lower > 2:
            found.append(sympy.Ge(symbol, ends.lower, evaluate=False))
        if ends is not None and getattr(ends.upper, "is_Integer", False):
            found.append(sympy.Le(symbol, ends.upper, evaluate=False))
    return found


def isolated(condition: Any, symbol: Any) -> Any:
    """What an equality says that a symbol is; None where it is none, or not one that tells it in whole numbers."""
    if _RELATIONS.get(condition.func.__name__) != "==" or symbol not in condition.free_symbols:
        return None
    rest = (condition.args[0] - condition.args[1]).expand()
    factor = rest.coeff(symbol, 1)
    if factor not in (1, -1) or symbol in (rest - factor * symbol).free_symbols:
        return None
    return (symbol - rest * factor).expand()


def holds(condition: Any, sizes: Mapping[Any, int]) -> bool | None:
    """Whether a condition on sizes is true at these; None where sympy cannot tell."""
    integer = importlib.import_module("sympy").Integer  # untyped, and torch has imported it by now
    try:
        value = condition.xreplace({symbol: integer(size) for symbol, size in sizes.items()})
    except (ZeroDivisionError, ValueError, TypeError, AssertionError):
        return None
    return {"True": True, "False": False}.get(str(value))


def shown(condition: Any, names: Mapping[Any, str]) -> str:
    """A condition for a message, with the declared names put in: ``height % 2 == 0``."""
    relation = _RELATIONS.get(condition.func.__name__)
    if relation:
        left, right = (render(side, names) for side in condition.args)
        if UNKNOWN not in (left, right):
            return f"{left} {relation} {right}"
    symbols = importlib.import_module("sympy").Symbol
    return str(condition.xreplace({symbol: symbols(name, integer=True) for symbol, name in names.items()}))


def bare(text: str) -> str:
    """Without the brackets around the whole, if they are a pair."""
    depth = 0
    for at, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return text[1:-1] if at and at == len(text) - 1 and text[0] == "(" else text
    return text


def symbolic_sizes(program: torch.export.ExportedProgram, placeholder: str) -> list[Any] | None:
    """Each axis of a placeholder as an int or a sympy expression of FX symbols; None if it is no tensor."""
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name == placeholder:
            return sizes_of(node.meta.get("val"))
    return None


def output_sizes(program: torch.export.ExportedProgram) -> list[list[Any] | None]:
    """As `symbolic_sizes`, for each output of the module."""
    kinds = torch.export.graph_signature.OutputKind
    specs = program.graph_signature.output_specs
    (node,) = [node for node in program.graph.nodes if node.op == "output"]
    values = [value.meta.get("val") if isinstance(value, torch.fx.Node) else value for value in node.args[0]]
    return [
        sizes_of(value)
        for spec, value in zip(specs, values, strict=True)
        if spec.kind == kinds.USER_OUTPUT and value is not None
    ]


def sizes_of(value: Any) -> list[Any] | None:
    """The axes of a traced value."""
    if not isinstance(value, torch.Tensor):
        return None
    return [size if isinstance(size, int) else size.node.expr for size in value.shape]


def node_of(program: torch.export.ExportedProgram, expression: Any) -> torch.fx.Node | None:
    """The first node of a program in whose size an expression stands."""
    nodes: list[torch.fx.Node] = list(program.graph.nodes)
    for node in nodes:
        value = node.meta.get("val")
        scalar: Any = getattr(value, "node", None)  # of a traced number
        found = sizes_of(value) or ([scalar.expr] if scalar is not None else [])
        if any(size == expression or (hasattr(size, "has") and size.has(expression)) for size in found):
            return node
    return None


class _NoFormError(Exception):
    """The grammar has no way to say this."""


class _Printer:
    def __init__(self, names: Mapping[Any, str]) -> None:
        self._names = names

    def sum(self, value: Any) -> str:
        if not value.is_Add:
            return self._product(value)
        text = ""
        for term in value.as_ordered_terms():
            negative = term.could_extract_minus_sign()
            part = self._product(-term if negative else term)
            text += (" - " if negative else " + ") + part if text else ("-" if negative else "") + part
        return text

    def _product(self, value: Any) -> str:
        if not value.is_Mul:
            return self._factor(value)
        below = 1
        parts = []
        for factor in value.as_ordered_factors():
            if factor.is_Rational and not factor.is_Integer:
                parts += [str(factor.p)] if factor.p != 1 else []
                below = int(factor.q)
            else:
                parts.append(self._factor(factor))
        if below != 1:  # a Rational times what torch knows to be divisible by it
            return f"({'*'.join(parts)}) // {below}"
        return "*".join(parts)

    def _factor(self, value: Any) -> str:
        if value.is_Integer:
            return str(int(value))
        if value.is_Symbol:
            if value not in self._names:
                raise _NoFormError
            name = self._names[value]
            return name if name.isidentifier() else f"({name})"
        if value.is_Pow and value.exp.is_Integer and 0 < value.exp <= 8:
            return "*".join([self._factor(value.base)] * int(value.exp))
        if value.is_Add or value.is_Mul:
            return f"({self.sum(value)})"
        return self._function(value)

    def _function(self, value: Any) -> str:
        kind = value.func.__name__
        if kind in _FLOOR_DIVISIONS:
            return f"({self._factor(value.args[0])} // {self._factor(value.args[1])})"
        if kind in _REMAINDERS:
            return f"({self._factor(value.args[0])} % {self._factor(value.args[1])})"
        if kind == "ModularIndexing":
            base, divisor, modulus = (self._factor(arg) for arg in value.args)
            return f"({base} // {divisor} % {modulus})"
        if kind == "CeilDiv":
            return f"(-(-{self._factor(value.args[0])} // {self._factor(value.args[1])}))"
        if kind in ("Min", "Max"):
            return f"{kind.lower()}({', '.join(self.sum(arg) for arg in value.args)})"
        if kind in ("FloorToInt", "CeilToInt") and value.args[0].func.__name__ == "IntTrueDiv":
            above, below = (self._factor(arg) for arg in value.args[0].args)
            return f"({above} // {below})" if kind == "FloorToInt" else f"(-(-{above} // {below}))"
        if kind in ("FloorToInt", "TruncToInt"):
            return self._scaled(value.args[0])
        raise _NoFormError

    def _scaled(self, value: Any) -> str:
        """``int(1.5 * h)`` as ``3*h // 2``, where the factor is an exact fraction."""
        factors: list[Any] = list(value.args) if value.is_Mul else []
        if len(factors) != 2 or not factors[0].is_Float or factors[1].func.__name__ != "ToFloat":
            raise _NoFormError
        above, below = float(factors[0]).as_integer_ratio()
        if below > _LARGEST_DENOMINATOR or above < 0:
            raise _NoFormError
        inner = self._factor(factors[1].args[0])
        whole = inner if above == 1 else f"{above}*{inner}"
        return whole if below == 1 else f"({whole} // {below})"
