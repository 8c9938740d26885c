"""Dims whose size follows from others: a mask over past and new tokens has as many columns as both together.

See docs/decisions/derived-dims.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from onnx_ci.export import arguments, private, traced
from onnx_ci.export.axes import size_of
from onnx_ci.export.measure import measure
from onnx_ci.export.places import spot
from onnx_ci.export.ranges import declared_range
from onnx_ci.export.shapes import Reading
from onnx_ci.export.state import answer
from onnx_ci.export.subject import Subject
from onnx_ci.export.types import Declared, RunCase
from onnx_ci.records import expression
from onnx_ci.records.contract import Contract
from onnx_ci.records.expression import UNKNOWN
from onnx_ci.records.model import DimSpec
from onnx_ci.records.result import Finding, finding

Relations = Mapping[str, str]
"""For a dim that follows from others the expression that gives its size."""


def relations(subject: Subject, program: torch.export.ExportedProgram, reading: Reading) -> dict[str, str]:
    """The dims that the capture takes to follow from others, where the module itself refuses all else.

    A dim with a declared range is one only where the others' ranges give just that range: else its declaration says
    what does not hold, and is to be judged.
    """
    found: dict[str, str] = {}
    for name, text in _candidates(program, reading):
        taken = {*found, *(used for known in found.values() for used in expression.parse(known).names)}
        free = name not in taken and not expression.parse(text).names & found.keys()
        if free and _promises_no_more(name, text, subject.declared) and _refuses_others(subject, name):
            found[name] = text
    return found


def _candidates(program: torch.export.ExportedProgram, reading: Reading) -> Iterator[tuple[str, str]]:
    free = {symbol: name for symbol, name in reading.symbols.items() if name.isidentifier()}
    said = [pair for pair in reading.tied.items() if pair[0].isidentifier()]
    for condition in private.deferred_asserts(program):
        said += isolated(condition, free)
    for name, text in said:
        if _follows(text) and expression.parse(text).names <= set(free.values()) - {name}:
            yield name, text


def isolated(condition: Any, names: Mapping[Any, str]) -> list[tuple[str, str]]:
    """What an equality says of each of its dims alone; a sum of others comes before what is left of one."""
    pairs = [(name, traced.isolated(condition, symbol)) for symbol, name in names.items()]
    said = [(name, str(traced.render(size, names))) for name, size in pairs if size is not None]
    return [pair for pair in said if _follows(pair[1])]


def _follows(text: str) -> bool:
    """Whether a text is an expression that a dim may stand for: rising in other dims, and not one of them itself."""
    return text != UNKNOWN and not text.isidentifier() and not text.isdigit() and expression.parse(text).rises()


def _promises_no_more(name: str, text: str, declared: Declared) -> bool:
    spec = declared.dims.get(name, DimSpec())
    least, most = ends(text, declared)
    return spec.multiple_of == 1 and spec.min in (None, least) and spec.max in (None, most)


def ends(text: str, declared: Declared) -> tuple[int, int | None]:
    """The least and the most that an expression gives inside the declared ranges."""
    promised = {name: declared_range(declared.dims.get(name)) for name in expression.parse(text).names}
    most = {name: one.most for name, one in promised.items() if one.most is not None}
    least = size_of(text, {name: one.least for name, one in promised.items()})
    return least, size_of(text, most) if len(most) == len(promised) else None


def _refuses_others(subject: Subject, name: str) -> bool:
    """Whether the module raises on the example with one place more along a dim, and with one less."""
    axes = {item.path: [at for at, axis in enumerate(item.axes) if axis == name] for item in subject.declared.inputs}

    def raises(step: int) -> bool:
        def change(path: str, leaf: Any) -> Any:
            for at in axes.get(path, ()):
                places = torch.arange(leaf.shape[at] + step, device=leaf.device) % leaf.shape[at]
                leaf = leaf.index_select(at, places)
            return leaf

        inputs = arguments.rebuild(subject.example, change)
        return bool(answer(subject.module, arguments.bind(subject.module, inputs)).error)

    size = next(leaf.value.shape[axes[leaf.path][0]] for leaf in subject.tensors if axes.get(leaf.path))
    return all(raises(step) for step in (1, -1) if size + step > 1)


def substituted(declared: Declared, found: Relations) -> Declared:
    """The declaration with the expression wherever such a dim stands."""
    inputs = [
        replace(item, axes=[found.get(axis, axis) if isinstance(axis, str) else axis for axis in item.axes])
        for item in declared.inputs
    ]
    return Declared(inputs, {name: dim for name, dim in declared.dims.items() if name not in found})


def remeasured(case: RunCase, declared: Declared) -> RunCase:
    """A case with the sizes of the dims that are left, and with what the relation contradicts in it."""
    again = measure(case, declared)
    new = [problem for problem in again.problems if problem not in case.problems]
    return replace(again, problems=[*case.problems, *new], why="; but ".join([case.why, *new]))


def promised(contract: Contract, declared: Declared) -> dict[str, str]:
    """The relations that an earlier export found, as its contract has them."""
    shapes = {item.source: item.shape for item in contract.inputs}
    pairs = [
        (axis, size)
        for item in declared.inputs
        for axis, size in zip(item.axes, shapes.get(item.path) or item.axes, strict=True)
    ]
    return {
        axis: size for axis, size in pairs if isinstance(axis, str) and isinstance(size, str) and axis not in ("", size)
    }


def told(found: Relations, reading: Reading) -> list[Finding]:
    """Says which dims follow from others."""
    made = []
    for name, text in found.items():
        place = reading.causes.get(name, ("", None))[1]
        seen_at = f" ({place.shown})" if place else ""
        made.append(
            finding(
                "contract.guard", "pass", name,
                f"{name} is always {text}: the module itself refuses other sizes{seen_at}; every case has it so, and "
                "the contract says it",
                data={"derived": text}, **spot(place),
            )
        )  # fmt: skip
    return made


def advice(said: Sequence[tuple[str, str]], subject: Subject) -> str:
    """How to declare a dim that follows from others, where one of these does; "" where none does.

    Args:
        said: What a condition says that each of its dims is.
        subject: What is exported.
    """
    for name, text in said:
        for item in subject.declared.inputs:
            if name in item.axes:
                axes = [text if axis == name else axis for axis in item.axes]
                shape = ", ".join(f'"{axis}"' if isinstance(axis, str) else str(axis) for axis in axes)
                return (
                    f"{name} is always {text}: write inputs.{item.path}.shape = [{shape}], or leave the range of "
                    f"{name} out ({subject.where}.dims)."
                )
    return ""
