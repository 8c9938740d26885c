"""Reads what a capture made of the declared dims: frozen, tied, narrowed, or as declared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from onnx_ci.export import traced
from onnx_ci.export.guardlog import GuardLog
from onnx_ci.export.places import Place, spot
from onnx_ci.export.ranges import Range, declared_range, is_declared
from onnx_ci.export.types import Declared, Leaf
from onnx_ci.records import expression
from onnx_ci.records.model import DimSpec
from onnx_ci.records.result import Finding, Status, finding

_STEP = re.compile(r"([A-Za-z_]\w*)|\[(\d+)\]")
_EQUAL = re.compile(r"^Eq\(([^(),]+), ([^(),]+)\)$")
_WORD = re.compile(r"[A-Za-z_]\w*")
_RANGE_HINT = "Declare the range that holds, export the other sizes as variants of their own, or change that line."
_FROZEN_HINT = "Compute with tensors instead of Python numbers there, fix the size, or export a variant for each."


@dataclass(frozen=True, slots=True)
class Reading:
    """The declared dims as the capture has them.

    Attributes:
        symbols: FX symbol (sympy) to declared name, for those that stayed symbols.
        captured: What the capture guarantees, by dim name.
        tied: For a dim that became another's double, that other.
        example: The size of each dim in the export example.
        narrowed: Dims whose declared range did not hold, with the guard.
        causes: For each dim that a guard speaks of, the guard with the dims' names, and the user's line.
        sources: The dim of each axis, or the expression in brackets, by torch's own name of it, ``L['x'].size()[0]``.
    """

    symbols: dict[Any, str] = field(default_factory=dict)
    captured: dict[str, Range] = field(default_factory=dict)
    tied: dict[str, str] = field(default_factory=dict)
    example: dict[str, int] = field(default_factory=dict)
    narrowed: dict[str, str] = field(default_factory=dict)
    causes: dict[str, tuple[str, Place | None]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def read(
    program: torch.export.ExportedProgram, leaves: Sequence[Leaf], declared: Declared, log: GuardLog, where: str
) -> Reading:
    """Compares each declared axis with the captured one.

    Args:
        program: As captured.
        leaves: The arguments, in the exporter's order.
        declared: What the config or the short form says.
        log: Guards with the user's lines.
        where: The model's path in the config, for messages.
    """
    reading = Reading()
    axes = list(_axes(program, leaves, declared))
    for axis in axes:
        if axis.is_plain:
            reading.example.setdefault(axis.dim, axis.example)
            reading.sources[axis.source] = axis.dim
            _read_axis(reading, program, axis.dim, axis.traced)
    for axis in axes:
        if not axis.is_plain:
            reading.sources[axis.source] = f"({axis.dim})"
            _read_derived(reading, program, axis)
    automatic = {axis.dim for axis in axes if axis.auto}
    for name in list(reading.captured):
        _judge(reading, name, declared, log, automatic=name in automatic, where=where)
    for text in [text for text in reading.tied if len(expression.parse(text).names) > 1]:
        _judge_sum(reading, text)
    return reading


@dataclass(frozen=True, slots=True)
class _Axis:
    """A dynamic axis: its dim (or expression of dims), what was traced for it, and torch's own name of it."""

    dim: str
    traced: Any
    example: int
    auto: bool
    source: str

    @property
    def is_plain(self) -> bool:
        return self.dim.isidentifier()


def _axes(program: torch.export.ExportedProgram, leaves: Sequence[Leaf], declared: Declared) -> Iterator[_Axis]:
    by_path = {item.path: item for item in declared.inputs}
    inputs = [
        spec.arg.name
        for spec in program.graph_signature.input_specs
        if spec.kind == torch.export.graph_signature.InputKind.USER_INPUT
    ]
    for placeholder, leaf in zip(inputs, leaves, strict=True):
        found = traced.symbolic_sizes(program, placeholder)
        item = by_path.get(leaf.path)
        if found is None or item is None:
            continue
        steps = [f"['{key}']" if key else f"[{at}]" for key, at in _STEP.findall(leaf.path)]
        for axis, (dim, size) in enumerate(zip(item.axes, found, strict=True)):
            if isinstance(dim, str):
                source = f"L{''.join(steps)}.size()[{axis}]"
                yield _Axis(dim, size, int(leaf.value.shape[axis]), axis in item.auto, source)


def _read_axis(reading: Reading, program: torch.export.ExportedProgram, name: str, size: Any) -> None:
    if isinstance(size, int) or size.is_Integer:
        reading.captured[name] = Range(int(size), int(size))
        return
    if not size.is_Symbol:
        reading.tied[name] = str(traced.render(size, reading.symbols))
        reading.captured.setdefault(name, Range(1, None))
        return
    known = reading.symbols.setdefault(size, name)
    if known != name:
        reading.tied[name] = known
    captured = _captured(program, size)
    seen = reading.captured.get(name)
    reading.captured[name] = Range(max(captured.least, seen.least), captured.most) if seen else captured


def _captured(program: torch.export.ExportedProgram, symbol: Any) -> Range:
    bounds = program.range_constraints.get(symbol)
    if bounds is None:
        return Range(0, None)
    return Range(int(bounds.lower), int(bounds.upper) if getattr(bounds.upper, "is_Integer", False) else None)


def _read_derived(reading: Reading, program: torch.export.ExportedProgram, axis: _Axis) -> None:
    """An axis declared as an expression (``2*h``): its dim may stand on no axis of its own."""
    wanted = expression.parse(axis.dim)
    size = axis.traced
    if isinstance(size, int) or size.is_Integer:
        reading.captured.update(
            {name: Range(axis.example, axis.example) for name in wanted.names - set(reading.captured)}
        )
        reading.tied[axis.dim] = str(size)
        return
    if len(wanted.names) > 1 or wanted.names <= set(reading.captured):
        known = reading.symbols.get(size)
        if getattr(size, "is_Symbol", False) and known in (None, axis.dim) and wanted.names <= set(reading.captured):
            reading.symbols[size] = axis.dim  # torch knows it as a size of its own; the declaration says what it is
            return
    new, free = sorted(wanted.names - set(reading.captured)), size.free_symbols - set(reading.symbols)
    if len(new) == 1 and len(free) == 1:
        (symbol,) = free
        reading.symbols[symbol] = new[0]
        reading.captured[new[0]] = _captured(program, symbol)
    for probe in (3, 8, 21):
        at = {symbol: probe + place for place, symbol in enumerate(sorted(size.free_symbols, key=str))}
        named = {reading.symbols[symbol]: value for symbol, value in at.items() if symbol in reading.symbols}
        if not wanted.names <= named.keys() or int(size.xreplace(at)) != wanted(named):
            reading.tied[axis.dim] = str(traced.render(size, reading.symbols))
            return


def _judge(reading: Reading, name: str, declared: Declared, log: GuardLog, *, automatic: bool, where: str) -> None:
    spec = declared.dims.get(name)
    promised, captured = declared_range(spec), reading.captured[name]
    key = f"{where}.dims.{name}"
    guard, place = reading.causes[name] = _cause(name, reading, log)
    because = f" because of {guard}" if guard else ""
    data = {"declared": [promised.least, promised.most], "captured": [captured.least, captured.most], "guard": guard}
    severity: Status = "warn" if automatic else "fail"
    at = spot(place)
    seen_at = f" ({place.shown})" if place else ""
    if name in reading.tied:
        other = reading.tied[name]
        reading.findings.append(
            finding(
                "contract.tied-dim", severity, name,
                f"{name} is declared as a dim of its own, but the export takes it to equal {other}{because}{seen_at}: "
                f"inputs where they differ are refused or answered wrongly",
                hint=f'{_same_hint(other)} if they are always equal; else use an example with distinct sizes, and '
                "remove the comparison.",
                data=data, **at,
            )
        )  # fmt: skip
        reading.narrowed[name] = guard or f"{name} = {other}"
    elif captured.least == captured.most and promised != captured:
        reading.findings.append(
            finding(
                "contract.static-dim", severity, name,
                f"{name} is {_said(spec, promised)}, but the export froze it to {captured.least}{because}{seen_at}",
                hint=f"{_FROZEN_HINT} The declaration is {key}.", data=data, **at,
            )
        )  # fmt: skip
        reading.narrowed[name] = guard or f"{name} = {captured.least}"
    elif _beyond(spec, captured):
        reading.findings.append(
            finding(
                "contract.range", "fail", name,
                f"{name} is declared {promised}, but the exported graph holds for {captured}{because}{seen_at}",
                hint=f"{_RANGE_HINT} The declaration is {key}.", data=data, **at,
            )
        )  # fmt: skip
        reading.narrowed[name] = guard or str(captured)


def _judge_sum(reading: Reading, text: str) -> None:
    """An axis that is declared as an expression of several dims, and that the capture takes to be something else."""
    other = reading.tied[text]
    if any(reading.captured[name].least == reading.captured[name].most for name in expression.parse(text).names):
        return  # that is said of the dim itself
    number = other.isdigit()
    reading.findings.append(
        finding(
            "contract.static-dim" if number else "contract.tied-dim", "fail", text,
            f"{text} is declared dynamic, but the export froze it to {other}"
            if number
            else f"an axis is declared {text}, but the export takes it to equal {other}: inputs where they differ are "
            "refused or answered wrongly",
            hint=_FROZEN_HINT if number else f"Declare that axis as {other} if it is always that.",
            data={"captured": other},
        )
    )  # fmt: skip
    reading.narrowed[text] = f"{text} = {other}"


def _same_hint(other: str) -> str:
    if other.isidentifier():
        return f"Declare both axes as {other}"
    return f'Write "{other}" in the place of that dim in the shape'


def _said(spec: DimSpec | None, promised: Range) -> str:
    return f"declared {promised}" if is_declared(spec) else "declared dynamic"


def _beyond(spec: DimSpec | None, captured: Range) -> bool:
    """Whether a stated end of the range lies outside of what the capture guarantees."""
    if spec is None:
        return False
    too_low = spec.min is not None and spec.min < captured.least and not _only_excludes_one(spec.min, captured.least)
    return too_low or (captured.most is not None and spec.max is not None and spec.max > captured.most)


def _only_excludes_one(declared: int, captured: int) -> bool:
    """Torch keeps 0 and 1 apart from all other sizes; that alone is something to test with a case."""
    return declared == 1 and captured == 2


def _cause(name: str, reading: Reading, log: GuardLog) -> tuple[str, Place | None]:
    """The guard that speaks of a dim, with the dims' names put in, and the user's line; ("", None) if none does."""
    # A frozen axis has no symbol in the program any more, and two tied ones have one: the log tells them apart.
    names = {symbol: reading.sources[source] for symbol, source in log.symbols.items() if source in reading.sources}
    names = {str(symbol): known for symbol, known in reading.symbols.items()} | names
    best: tuple[str, Place | None] = ("", None)
    for guard in log.guards:
        text = _WORD.sub(lambda word: names.get(word[0], word[0]), _EQUAL.sub(r"\1 == \2", guard.text))
        if _says_nothing(text):
            continue
        if name in words_in(text) and "Ne(" not in text:
            if guard.place is not None:
                return text, guard.place
            best = best if best[0] else (text, None)
    return best


def _says_nothing(text: str) -> bool:
    """Whether a guard holds of any sizes, once its symbols have the dims' names: ``b == b``."""
    sides = text.split(" == ")
    try:
        left, right = (expression.parse(side) for side in sides)
        points = [{name: away * at for at, name in enumerate(sorted(left.names), 2)} for away in (3, 7)]
        return left.names == right.names and all(left(at) == right(at) for at in points)
    except ValueError:  # no equality, or one of another form
        return False


def words_in(text: str) -> set[str]:
    """The names in a guard."""
    return set(_WORD.findall(text))
