"""Stage contract: whether each declared dim of the inputs is dynamic in the file, and by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from onnx_ci.records.contract import Contract, TensorContract
from onnx_ci.records.model import InputSpec, ModelSpec
from onnx_ci.records.result import Finding, finding

Axis = int | str | None
"""A size, a symbol, or nothing said."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output as the file has it; `shape` None is an unknown rank."""

    name: str
    dtype: str
    shape: tuple[Axis, ...] | None


@dataclass(frozen=True, slots=True)
class Signature:
    """What a file takes and gives, in order."""

    inputs: list[Tensor]
    outputs: list[Tensor]


Judged = tuple[Tensor, TensorContract, InputSpec | None]
"""A tensor of the file, what contract.json promises of it, and what the config declares of it."""


def static(judged: Sequence[Judged], declared: ModelSpec, contract: Contract) -> list[Finding]:
    """Each declared axis of the inputs: dynamic where a dim is named, and of the declared size where one is."""
    found = []
    for tensor, promised, spec in judged:
        wanted = spec.shape if spec and spec.shape is not None else promised.shape
        if wanted is None or tensor.shape is None:
            continue
        if len(wanted) != len(tensor.shape):
            message = f"{tensor.name}: declared with {len(wanted)} axes {wanted}, the file has {list(tensor.shape)}"
            found.append(finding("contract.shape", "fail", tensor.name, message, data={"file": list(tensor.shape)}))
            continue
        for axis, (want, have) in enumerate(zip(wanted, tensor.shape, strict=True)):
            if isinstance(want, str) and isinstance(have, int):
                found += _frozen(tensor.name, axis, want, have, declared, contract)
            elif isinstance(want, int) and isinstance(have, int) and want != have:
                message = f"{tensor.name}, axis {axis}: declared {want}, the file takes {have} only"
                found.append(finding("contract.shape", "fail", tensor.name, message, data={"file": list(tensor.shape)}))
    if found:
        return found
    shapes = {tensor.name: list(tensor.shape) if tensor.shape is not None else None for tensor, _, _ in judged}
    dynamic = sorted({axis for shape in shapes.values() for axis in shape or [] if isinstance(axis, str)})
    message = f"every declared dim is dynamic in the file: {', '.join(dynamic)}" if dynamic else "no dim is dynamic"
    return [finding("contract.static-dim", "pass", "", message, data={"file": shapes})]


def _frozen(name: str, axis: int, dim: str, size: int, declared: ModelSpec, contract: Contract) -> list[Finding]:
    spec, promised = declared.dims.get(dim), contract.dims.get(dim)
    low, high = (spec.min, spec.max) if spec else (None, None)
    if promised and promised.declared:
        low, high = (promised.min if low is None else low), (promised.max if high is None else high)
    if low == high == size:
        return []
    has_range = low is not None or high is not None
    range_ = f" ({'…' if low is None else low} to {'…' if high is None else high})" if has_range else ""
    return [
        finding(
            "contract.static-dim",
            _status([dim], declared, contract),
            dim,
            f"{name}, axis {axis}: {dim}{range_} is declared dynamic, the file takes {size} only",
            hint="Look in forward for a size used as a Python number (a loop, a branch, a table of fixed length), "
            f"or declare the dim as {size}.",
            data={"input": name, "axis": axis, "size": size, "min": low, "max": high},
        )
    ]


def tied(judged: Sequence[Judged], declared: ModelSpec, contract: Contract) -> list[Finding]:
    """Two declared dims that share one symbol of the file."""
    by_symbol: dict[str, dict[str, str]] = {}
    for tensor, promised, spec in judged:
        wanted = spec.shape if spec and spec.shape is not None else promised.shape
        if wanted is None or tensor.shape is None or len(wanted) != len(tensor.shape):
            continue
        for axis, (want, have) in enumerate(zip(wanted, tensor.shape, strict=True)):
            if isinstance(want, str) and isinstance(have, str) and want.isidentifier():
                by_symbol.setdefault(have, {}).setdefault(want, f"{tensor.name}, axis {axis}")
    found = [
        finding(
            "contract.tied-dim",
            _status(list(dims), declared, contract),
            ", ".join(dims),
            f"{' and '.join(f'{dim} ({place})' for dim, place in dims.items())} are one dim {symbol} in the file: "
            "they can't differ",
            hint="Give the example a distinct size for each dim; a square example ties height to width.",
            data={"symbol": symbol, "dims": dims},
        )
        for symbol, dims in by_symbol.items()
        if len(dims) > 1
    ]
    return found or [finding("contract.tied-dim", "pass", "", "each declared dim has a symbol of its own in the file")]


def _status(dims: Sequence[str], declared: ModelSpec, contract: Contract) -> Literal["warn", "fail"]:
    """What the export has judged already is shown again as a warning, unless the config itself names the dim.

    The export knows which dims were left to the exporter (Dim.AUTO), where a frozen one is no broken promise.
    """
    in_config = {axis for spec in declared.inputs.values() for axis in spec.shape or []} | set(declared.dims)
    judged_before = any(dim in contract.narrowed for dim in dims)
    return "warn" if judged_before and not in_config.intersection(dims) else "fail"
