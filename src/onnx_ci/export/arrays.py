"""Tensors as the arrays that files hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from onnx_ci.artifact.tensors import Array, Value

_SAME_BITS = {torch.bfloat16: (torch.int16, "bfloat16")}
for _name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"):
    if hasattr(torch, _name):
        _SAME_BITS[getattr(torch, _name)] = (torch.int8, _name)


def to_value(given: Any) -> Value:
    """A leaf of inputs or outputs as the file has it: complex numbers become pairs, Python numbers scalars."""
    if isinstance(given, torch.Tensor):
        return _array(given)
    if isinstance(given, (list, tuple)):
        return [_array(item) for item in given]
    if isinstance(given, bool):
        return np.asarray(given, np.bool_)
    if isinstance(given, int):
        return np.asarray(given, np.int64)
    return np.asarray(given)


def _array(tensor: torch.Tensor) -> Array:
    plain = tensor.detach().to("cpu")
    if plain.is_sparse or plain.is_quantized:
        plain = plain.dequantize() if plain.is_quantized else plain.to_dense()
    plain = plain.resolve_conj().resolve_neg()
    if plain.is_complex():
        plain = torch.view_as_real(plain)
    if plain.dtype in _SAME_BITS:
        import ml_dtypes  # comes with onnx

        bits, name = _SAME_BITS[plain.dtype]
        array: Array = plain.contiguous().view(bits).numpy().view(getattr(ml_dtypes, name))
        return array
    return plain.numpy()
