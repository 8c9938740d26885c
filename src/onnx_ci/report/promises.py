"""What each model accepts, for a reader: its inputs with their sizes, and what was frozen into the file. Plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnx_ci.records.contract import Contract, DimContract, TensorContract
from onnx_ci.records.expression import ExpressionError, parse
from onnx_ci.records.result import EXPORT_TARGET, Result, label


@dataclass(frozen=True, kw_only=True, slots=True)
class Promise:
    """One input of one model; or, with an empty form, a value that the file holds.

    Attributes:
        form: ``float32 [batch, 3, height]``.
        sizes: The range of each of its dims; one that nobody declared is called captured.
    """

    model: str
    name: str
    form: str
    sizes: str


def promises(results: Sequence[Result]) -> list[Promise]:
    """Of each export that made an artifact, its inputs in the file's order, then its frozen arguments."""
    return [
        promise
        for one in results
        if one.target == EXPORT_TARGET and one.contract is not None
        for promise in _of(label(one.model, one.variant), one.contract)
    ]


def _of(model: str, contract: Contract) -> Iterator[Promise]:
    for item in contract.inputs:
        axes = "of any rank" if item.shape is None else f"[{', '.join(map(str, item.shape))}]"
        ranges = [_range(name, contract.dims[name]) for name in _names(item) if name in contract.dims]
        yield Promise(model=model, name=item.name, form=f"{item.dtype} {axes}", sizes=", ".join(ranges))
    for path, value in contract.frozen.items():
        yield Promise(model=model, name=path, form="", sizes=f"always {value!r}: frozen into the file")


def _range(name: str, dim: DimContract) -> str:
    if dim.min == dim.max:
        text = f"{name} {dim.min}"
    else:
        text = f"{name} {dim.min} to {dim.max}" if dim.max is not None else f"{name} {dim.min} and more"
    text += f", multiples of {dim.multiple_of}" if dim.multiple_of > 1 else ""
    return text if dim.declared else f"{text} (captured)"


def _names(item: TensorContract) -> list[str]:
    """The dims of an input in the order of its axes; none of an axis that is no expression of ours."""
    found: dict[str, None] = {}
    for axis in item.shape or []:
        if isinstance(axis, str) and axis != "?":
            try:
                found.update(dict.fromkeys(sorted(parse(axis).names)))
            except ExpressionError:
                continue
    return list(found)
