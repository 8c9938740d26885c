"""A file whose memory is known: between its small input and its small output lie two large values."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .artifacts import MadeCase, model_of, value


def widening(width: int) -> onnx.ModelProto:
    """y = the sum of exp(x) over `width` copies of x; x is [batch, 1], y is [batch]; 4·batch·width bytes a value."""
    constants = {"shape": np.array([1, width], np.int64), "axes": np.array([1], np.int64)}
    return model_of(
        [
            helper.make_node("Expand", ["x", "shape"], ["wide"], name="node_wide"),
            helper.make_node("Exp", ["wide"], ["exp"], name="node_exp"),
            helper.make_node("ReduceSum", ["exp", "axes"], ["y"], name="node_y", keepdims=0),
        ],
        [value("x", TensorProto.FLOAT, ["batch", 1])],
        [value("y", TensorProto.FLOAT, ["batch"])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )


def widening_case(batch: int) -> MadeCase:
    """Nobody compares its output."""
    x = np.zeros((batch, 1), np.float32)
    return MadeCase(f"b{batch}", {"x": x}, {"y": x[:, 0]}, None, "example", {"batch": batch})
