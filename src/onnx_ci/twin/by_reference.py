"""The last path: onnx's reference, for operators that nobody else runs in double. What it ran is listed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from onnx_ci.twin.registry import Unoracled
from onnx_ci.twin.single import one_node
from onnx_ci.twin.values import Value


def run(node: onnx.NodeProto, version: int, inputs: Sequence[Value]) -> tuple[Value, ...]:
    """The outputs of a node.

    Raises:
        Unoracled: The reference has no such operator, fails, or answers in float32.
    """
    try:
        evaluator = ReferenceEvaluator(one_node(node, version, inputs))
        feeds = {f"i{at}": value for at, value in enumerate(inputs) if value is not None}
        made = evaluator.run([f"o{at}" for at, name in enumerate(node.output) if name], feeds)
    except Exception as error:  # it raises many kinds, NotImplementedError and TypeError among them
        raise Unoracled(node.op_type, f"onnx's reference: {str(error).strip()[:200]}") from error
    if any(isinstance(value, np.ndarray) and value.dtype in (np.float32, np.float16) for value in made):
        raise Unoracled(node.op_type, "onnx's reference answers in float32")
    values = iter(made)
    return tuple(next(values) if name else None for name in node.output)
