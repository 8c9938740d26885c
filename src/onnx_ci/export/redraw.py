"""Other values for a case that we made, where the module refuses those drawn: a size is not to blame for its values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from onnx_ci.export import arguments, sight
from onnx_ci.export.state import answer
from onnx_ci.export.subject import Subject
from onnx_ci.export.types import REDRAWS, Call, Outputs, RunCase
from onnx_ci.records.result import Finding, finding


@dataclass(frozen=True, slots=True)
class Called:
    """A case and what the module gave for it.

    Attributes:
        findings: That it refused some values and takes others.
        has_mask: Whether an input may be a mask.
        is_blind: Whether a mask hides all that some query could see.
    """

    case: RunCase
    call: Call
    given: Outputs
    findings: tuple[Finding, ...] = ()
    has_mask: bool = False
    is_blind: bool = False


def call(subject: Subject, case: RunCase) -> Called:
    """Calls the module on a case; on other values where it refuses those of a case of ours, or masks hide all."""
    first = _call(subject, case)
    if case.redrawn is None or not (first.given.error or _masked_out(subject, first)):
        return first
    for at in range(REDRAWS):
        other = _call(subject, replace(case, inputs=case.redrawn(at), given=None))
        if not other.given.error and not _masked_out(subject, other):
            return replace(other, findings=_refused(case, first.given.error)) if first.given.error else other
    return first


def _call(subject: Subject, case: RunCase) -> Called:
    bound = arguments.bind(subject.module, case.inputs)
    given = case.given if case.given is not None else answer(subject.module, bound)
    if not given.error and len(given.values) != len(subject.eager.values):
        counts = f"{len(given.values)} values here, and {len(subject.eager.values)} for the export example"
        given = replace(given, error=f"the module gives {counts}")
    masks = not given.error and any(_is_mask(leaf) for leaf in arguments.paths(case.inputs).values())
    return Called(case, bound, given, has_mask=masks, is_blind=masks and sight.is_blind(subject.module, bound))


def _masked_out(subject: Subject, called: Called) -> bool:
    """Whether an input may be a mask that hid a whole row: outputs are NaN that are none for the example."""
    if called.is_blind or not called.has_mask:
        return called.is_blind
    pairs = zip(called.given.values, subject.eager.values, strict=True)
    return any(_has_nan(value) and not _has_nan(known) for value, known in pairs)


def _is_mask(leaf: Any) -> bool:
    if not isinstance(leaf, torch.Tensor) or leaf.dtype.is_complex:
        return False
    return leaf.dtype == torch.bool or bool(((leaf == 0) | (leaf == 1)).all())


def _has_nan(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and bool((value != value).any())


def _refused(case: RunCase, error: str) -> tuple[Finding, ...]:
    said = error.splitlines()[0][:200]
    return (
        finding(
            "contract.declared-size", "warn", case.name,
            f"the PyTorch module refuses values that were drawn for the case {case.name}, and takes others of the same "
            f"sizes: {said}",
            hint="Narrow the input's low, high or values to what production sends, or name cases with real inputs.",
            data={"case": case.name, "dims": case.dims},
        ),
    )  # fmt: skip
