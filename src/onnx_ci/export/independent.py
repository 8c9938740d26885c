"""How far apart a batch's rows are from the same rows in other company, and what that says of the declaration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from onnx_ci.export import arrays
from onnx_ci.export.subject import Subject
from onnx_ci.numerics.dtypes import float_dtype
from onnx_ci.numerics.figures import relative_error
from onnx_ci.records.cases import BatchIdentity
from onnx_ci.records.result import Finding, Status, finding

RULE = "contract.batch-mixed"
_SHARE_OF_FLOOR = 0.4
"""Of what parity allows at least: rows that differ by less are the same rows, added up in another order."""
_MIXED = 1e-2
"""relL2 that no order of sums explains; below it a module that is badly conditioned may do as much."""
_HINT = (
    'Set batch = "mixed" if rows may depend on each other; else look in forward for a sum, mean, softmax or sort over '
    "the first axis, statistics of the batch, and numbers that hang on a row's place."
)


@dataclass(frozen=True, slots=True)
class Apart:
    """How rows differ, in words.

    Attributes:
        sure: Whether it is more than rounding may explain.
    """

    text: str
    sure: bool = False


def apart(one: torch.Tensor, other: torch.Tensor) -> Apart | None:
    """How two tensors differ by more than the order of a sum explains; None where they do not."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return Apart(f"shapes {list(one.shape)} and {list(other.shape)}")
    left, right = arrays.to_value(one), arrays.to_value(other)
    if not isinstance(left, np.ndarray) or not isinstance(right, np.ndarray):
        return Apart("no tensors")
    kind = float_dtype(left.dtype)
    if kind is None:
        differ = int((left != right).sum())
        return Apart(f"{differ} values differ") if differ else None
    left, right = left.astype("float64"), right.astype("float64")
    if not bool(((left == left) == (right == right)).all()):
        return Apart("NaN at other places", sure=True)
    error = relative_error(left, right)
    limit = _SHARE_OF_FLOOR * kind.floor
    return None if error <= limit else Apart(f"relL2 {error:.2g}", sure=error > max(_MIXED, limit))


def judge(subject: Subject, identity: BatchIdentity, mixing: Mapping[str, Apart], rows: Sequence[int]) -> list[Finding]:
    """Holds PyTorch's own rows against the declaration, where the config makes one.

    Args:
        subject: With what the config says.
        identity: What was tried.
        mixing: Outputs whose rows depend on each other.
        rows: How many there are in each part.
    """
    if subject.spec.batch != "independent":
        return []
    parts = "+".join(map(str, rows))
    why = identity.not_held.get("", "")
    held = [name for name in identity.split if name in identity.permutes]
    if why or not (held or mixing):
        told = why or f"no output has {identity.dim} for its first axis and is the same at a second call"
        return [finding(RULE, "skip", identity.dim, f'batch = "independent" was not tried: {told}')]
    if not mixing:
        said = f"the rows of {identity.dim} do not depend on each other, in parts ({parts}) and in another order"
        return [finding(RULE, "pass", identity.dim, f"{said}: {', '.join(held)}")]
    status: Status = "fail" if any(one.sure for one in mixing.values()) else "warn"
    worst = sorted(mixing.items(), key=lambda item: not item[1].sure)
    told = ", ".join(f"{name}: {one.text}" for name, one in worst)
    said = (
        f'batch = "independent" is declared, but in PyTorch itself the rows of {identity.dim} depend on each other '
        f"({sum(rows)} rows beside the same rows as {parts} and in another order: {told})"
    )
    return [finding(RULE, status, identity.dim, said, hint=_HINT, data={"outputs": [name for name, _ in worst]})]
