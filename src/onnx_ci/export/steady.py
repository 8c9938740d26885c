"""Whether the module's answer to tied values is one that rounding leaves alone: else no runtime can be held to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir
import torch

from onnx_ci.export import arguments, program
from onnx_ci.export.oracle import Oracle, Unoracled
from onnx_ci.export.subject import Subject
from onnx_ci.export.types import Outputs, RunCase

_NUDGE = 2.0**-20
"""Eight units in the last place of float32: about what a few layers round."""
_MOST = 1e-4
"""What it may change, of the largest element: a hundred times itself."""
_CHOOSING = {"TopK", "ArgMax", "ArgMin", "NonMaxSuppression", "Unique"}


def doubt(oracle: Oracle, subject: Subject, model: ir.Model, case: RunCase, truth: Outputs) -> str:
    """Why a difference in a case of ties may be no fault; empty where the answer stands firm.

    Equal scores may be picked in any order, and a norm over equal values divides rounding by next to nothing.

    Args:
        oracle: The module in float64.
        subject: With what the module gives for the example, which tells how large its outputs are.
        model: Of the file.
        case: With the inputs that are tied.
        truth: The outputs of the case in float64.
    """
    if not case.tied:
        return ""
    leaves = arguments.paths(case.inputs)
    if not all(leaves[path].dtype.is_floating_point for path in case.tied):
        picks = sorted({node.op_type for node in program.nodes(model)} & _CHOOSING)
        return f"{', '.join(picks)} may pick among equal values in any order" if picks else ""
    drawn = torch.Generator().manual_seed(0)

    def nudged(path: str, leaf: Any) -> Any:
        if path not in case.tied:
            return leaf
        exact = leaf.double()
        size = float(exact.abs().max()) or 1.0
        return exact + _NUDGE * size * torch.randn(exact.shape, generator=drawn, dtype=torch.float64).to(exact.device)

    other = replace(case, inputs=arguments.rebuild(case.inputs, nudged))
    try:
        moved = oracle.run(arguments.bind(subject.module, other.inputs))
    except Unoracled as error:
        return str(error)
    pairs = zip(truth.values, moved.values, subject.eager.values, strict=True)
    if len(moved.values) == len(truth.values) and all(_holds(*three) for three in pairs):
        return ""
    return "a millionth more or less in the equal values changes PyTorch's own answer"


def _holds(value: Any, moved: Any, usual: Any) -> bool:
    if isinstance(value, (list, tuple)):
        same = isinstance(moved, (list, tuple)) and len(moved) == len(value)
        return same and all(_holds(one, two, None) for one, two in zip(value, moved, strict=True))
    if not isinstance(value, torch.Tensor) or not isinstance(moved, torch.Tensor):
        return type(value) is type(moved)
    if value.shape != moved.shape or not (value.dtype.is_floating_point or value.dtype.is_complex):
        return value.shape == moved.shape and torch.equal(value, moved)
    here, there = (torch.where(torch.isfinite(one), 0, one) for one in (value, moved))
    if not torch.allclose(here, there, rtol=0, atol=0, equal_nan=True):
        return False
    limit = _MOST * max(_largest([value, usual]), 1e-30)
    return _largest([value - moved]) <= limit


def _largest(tensors: Sequence[Any]) -> float:
    """The largest finite magnitude."""
    found = 0.0
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and tensor.numel():
            sizes = tensor.detach().abs().double()
            found = max(found, float(torch.nan_to_num(sizes, nan=0.0, posinf=0.0).max()))
    return found if math.isfinite(found) else 0.0
