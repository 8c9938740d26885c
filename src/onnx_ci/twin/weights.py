"""Constants of a file, read one at a time when their node runs: from the message, or from the data beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from onnx_ci.twin.values import Array, widened

_RAW: dict[int, np.dtype[Any]] = {
    TensorProto.FLOAT: np.dtype("<f4"),
    TensorProto.DOUBLE: np.dtype("<f8"),
    TensorProto.FLOAT16: np.dtype("<f2"),
}
CONSTANTS = ("Constant", "ConstantOfShape")
FLOATS: set[int] = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}


def read(tensor: TensorProto, base: Path | None) -> Array:
    """A tensor with its floats widened.

    Raises:
        OSError: The file beside the model can't be read.
        ValueError: The data does not fit the tensor's shape, or lies in a file and no folder was given.
    """
    external = tensor.data_location == TensorProto.EXTERNAL
    if external and base is None:
        raise ValueError(f"the data of {tensor.name} lies in another file")
    dtype = _RAW.get(tensor.data_type)
    if dtype is None:
        return widened(numpy_helper.to_array(tensor, str(base or "")))
    if external:
        assert base is not None
        return _mapped(tensor, base, dtype)
    if tensor.HasField("raw_data"):
        return _shaped(np.frombuffer(tensor.raw_data, dtype), tensor)
    return widened(numpy_helper.to_array(tensor))


def _mapped(tensor: TensorProto, base: Path, dtype: np.dtype[np.generic]) -> Array:
    """Through a map of the file, so that a weight is never in memory in two widths."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path, offset = base / entries["location"], int(entries.get("offset", 0))
    count = int(np.prod(tensor.dims, dtype=np.int64))
    if count == 0:
        return np.zeros(tuple(tensor.dims))
    return _shaped(np.memmap(path, dtype, mode="r", offset=offset, shape=(count,)), tensor)


def _shaped(flat: Array, tensor: TensorProto) -> Array:
    return np.asarray(flat).astype(np.float64).reshape(tuple(tensor.dims))


def constant_tensor(node: onnx.NodeProto) -> TensorProto | None:
    """The tensor that a Constant or ConstantOfShape node holds; None for another, and where it is a number or text."""
    if node.op_type not in CONSTANTS or node.domain not in ("", "ai.onnx"):
        return None
    return next((item.t for item in node.attribute if item.name == "value"), None)


def dense(sparse: onnx.SparseTensorProto, base: Path | None) -> Array:
    """A sparse constant, filled in."""
    values, indices = read(sparse.values, base), read(sparse.indices, base)
    full = np.zeros(tuple(sparse.dims), values.dtype)
    if indices.ndim == 1:
        full.reshape(-1)[indices] = values
    else:
        full[tuple(indices.T)] = values
    return full
