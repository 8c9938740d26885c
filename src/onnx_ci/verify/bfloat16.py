"""bfloat16 in and out of ONNX Runtime, whose Python side has no numpy type for it: by the bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime

from onnx_ci.artifact.tensors import Value

_ELEMENT = int(onnx.TensorProto.BFLOAT16)


def run(handle: Any, outputs: Sequence[str], feeds: Mapping[str, Value], options: Any) -> list[Value]:
    """Runs a session that has bfloat16 among its inputs or outputs; plain tensors only."""
    values = {name: _to_runtime(value) for name, value in feeds.items()}
    return [_from_runtime(value) for value in handle.run_with_ort_values(list(outputs), values, options)]


def _to_runtime(value: Value) -> Any:
    if not isinstance(value, np.ndarray):
        raise TypeError("sequences and optionals beside bfloat16 can't be fed from Python")
    if value.dtype.name != "bfloat16":
        return onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value))
    bits = np.ascontiguousarray(value).view(np.uint16)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, _ELEMENT)


def _from_runtime(value: Any) -> Value:
    if not value.is_tensor() or value.element_type() != _ELEMENT:
        array: Value = value.numpy()
        return array
    shape = tuple(value.shape())
    count = int(np.prod(shape, dtype=np.int64))
    raw = ctypes.string_at(value.data_ptr(), count * 2) if count else b""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(_ELEMENT)
    return np.frombuffer(raw, dtype=np.uint16).view(dtype).reshape(shape).copy()
