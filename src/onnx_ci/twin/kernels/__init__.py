"""Own kernels by family; importing this fills the register."""

from __future__ import annotations

from onnx_ci.twin.kernels import (
    activations,
    constants,
    control,
    convolution,
    elementwise,
    linear,
    normalization,
    pooling,
    reductions,
    sequences,
    shapes,
)
from onnx_ci.twin.registry import KERNELS

FAMILIES = (
    activations,
    constants,
    control,
    convolution,
    elementwise,
    linear,
    normalization,
    pooling,
    reductions,
    sequences,
    shapes,
)

__all__ = ["FAMILIES", "KERNELS"]
