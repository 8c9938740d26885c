"""The second path: ONNX Runtime's own kernels in double, one session for each operator, attributes and dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime

from onnx_ci.records.model import CPU
from onnx_ci.twin.single import one_node, signature
from onnx_ci.twin.values import Value

_NARROW = (np.float32, np.float16)


class RuntimeKernels:
    """Sessions of single nodes, kept for the twin's life; the rank is left open, so that one serves all shapes."""

    def __init__(self) -> None:
        self._sessions: dict[Any, Any] = {}

    def run(self, node: onnx.NodeProto, version: int, inputs: Sequence[Value]) -> tuple[Value, ...] | None:
        """The outputs of a node; None where the runtime has no kernel for these types."""
        key = _key(node, version, inputs)
        if key not in self._sessions:
            self._sessions[key] = _session(node, version, inputs)
        session = self._sessions[key]
        if session is None:
            return None
        feeds = {f"i{at}": _fed(value) for at, value in enumerate(inputs) if value is not None}
        made = session.run(None, feeds)
        if any(getattr(value, "dtype", None) in _NARROW for value in made):
            return None  # computed in float32, whatever came in
        values = iter(made)
        return tuple(next(values) if name else None for name in node.output)


def _key(node: onnx.NodeProto, version: int, inputs: Sequence[Value]) -> Any:
    attributes = tuple(sorted(item.SerializeToString(deterministic=True) for item in node.attribute))
    return node.op_type, version, attributes, signature(inputs), tuple(map(bool, node.output))


def _session(node: onnx.NodeProto, version: int, inputs: Sequence[Value]) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        raw = one_node(node, version, inputs).SerializeToString()
        return onnxruntime.InferenceSession(raw, options, providers=[CPU])
    except Exception:  # no kernel, no such version, a schema that refuses double: each has an error of its own
        return None


def _fed(value: Value) -> Any:
    if isinstance(value, list):
        return [_fed(item) for item in value]
    return None if value is None else np.ascontiguousarray(value).reshape(value.shape)
