"""Matrix products, by BLAS in float64."""

from __future__ import annotations

import numpy as np

from onnx_ci.twin.registry import Call, Elsewhere, kernel
from onnx_ci.twin.values import Array, is_float


@kernel("MatMul")
def matmul(call: Call, a: Array, b: Array) -> Array:
    """Batches against one matrix are one product."""
    if not is_float(a):
        raise Elsewhere
    if a.ndim > 2 and b.ndim == 2:
        return (a.reshape(-1, a.shape[-1]) @ b).reshape(*a.shape[:-1], b.shape[-1])
    return np.matmul(a, b)


@kernel("Gemm")
def gemm(call: Call, a: Array, b: Array, c: Array | None = None) -> Array:
    """α·A·B + β·C."""
    if not is_float(a) or call.version < 7:
        raise Elsewhere
    made = (a.T if call["transA"] else a) @ (b.T if call["transB"] else b)
    made = made if call["alpha"] == 1 else call["alpha"] * made
    if c is None:
        return made
    return made + (c if call["beta"] == 1 else call["beta"] * c)


@kernel("Det")
def determinant(call: Call, x: Array) -> Array:
    """Of each square matrix."""
    return np.linalg.det(x)
