"""Small constants that the exporter's optimizer took for nothing: its rules match 0 and 1 within a tolerance.

``x / (x.sum() + 1e-8)`` loses its epsilon so, and is NaN at zeros. Values between usual ones hardly show it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx_ir as ir

from onnx_ci.export import program, source
from onnx_ci.export.places import Places

_NEUTRAL = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0, "Div": 1.0}
_SIGNS = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/"}
_RULES = {"Add": "add_0", "Sub": "sub_0", "Mul": "mul_by_1", "Div": "div_by_1"}
"""By operator, onnxscript's rule."""
_REL, _ABS = 1e-5, 1e-8
"""Within what its patterns match a constant, as `math.isclose` takes them."""


@dataclass(frozen=True, slots=True)
class Lost:
    """An operation that changes its input, and was removed as if it did not.

    Attributes:
        text: In words: "+ 1e-08".
        rule: Of the optimizer.
        file: Of the code that made it, where that is known; likewise `line`.
    """

    text: str
    rule: str
    file: str | None = None
    line: int | None = None


def find(before: ir.Model | None, after: ir.Model, places: Places) -> dict[str, Lost]:
    """By the name that its value had, each operation that is gone though it has an effect.

    Args:
        before: The graph before the optimizer, with its constants and the exporter's notes; None for none.
        after: The same when it was optimized, with the same names.
        places: Of the repository.
    """
    if before is None:
        return {}
    kept = {(node.op_type, value.name) for node in program.nodes(after) for value in node.outputs}
    found = {}
    for node in program.nodes(before):
        constant, name = _near_neutral(node), node.outputs[0].name if node.outputs else None
        if name and constant is not None and (node.op_type, name) not in kept:
            place = source.origin(node, places)
            text = f"{_SIGNS[node.op_type]} {constant:.7g}"
            found[name] = Lost(text, _RULES[node.op_type], place.file, place.line)
    return found


def _near_neutral(node: ir.Node) -> float | None:
    """The constant operand that is all but neutral; None where there is none."""
    neutral = _NEUTRAL.get(node.op_type)
    if neutral is None or node.domain:
        return None
    for value in node.inputs if node.op_type in ("Add", "Mul") else node.inputs[1:]:
        tensor = ir.convenience.get_const_tensor(value) if value is not None else None
        if tensor is not None and not tensor.shape.dims and tensor.dtype.is_floating_point():
            constant = float(tensor.numpy().item())
            if constant != neutral and math.isclose(constant, neutral, rel_tol=_REL, abs_tol=_ABS):
                return constant
    return None
