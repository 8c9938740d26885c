"""One weight of the file is rounded to half precision: float32's noise hides it."""

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from onnx_ci.artifact import layout


def tamper(artifact: Path) -> None:
    model = onnx.load(str(artifact / "model.onnx"))
    tensor = next(one for one in model.graph.initializer if list(one.dims) == [128, 128])
    weight = numpy_helper.to_array(tensor).copy()
    weight[17, 42] = np.float16(weight[17, 42])
    tensor.CopyFrom(numpy_helper.from_array(weight, tensor.name))
    onnx.save(model, str(artifact / "model.onnx"))
    (artifact / "model.onnx.data").unlink(missing_ok=True)
    layout.write_manifest(artifact)
