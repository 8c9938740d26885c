"""Something scales what the optimizer folded by two millionths, far below float32's noise in a model."""

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from onnx_ci.artifact import layout


def tamper(artifact: Path) -> None:
    model = onnx.load(str(artifact / "model.onnx"))
    first = next(node.input[1] for node in model.graph.node if node.op_type == "Conv")
    (weight,) = [item for item in model.graph.initializer if item.name == first]
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(1 + 2e-6), first))
    onnx.save(model, str(artifact / "model.onnx"))
    (artifact / "model.onnx.data").unlink(missing_ok=True)
    layout.write_manifest(artifact)
