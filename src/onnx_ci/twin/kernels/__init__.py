"""Own kernels by family; importing this fills the register."""

from __future__ import annotations

from onnx_ci.twin.kernels import (
    activations,
    attention,
    constants,
    control,
    convolution,
    detection,
    elementwise,
    linear,
    normalization,
    pooling,
    quantize,
    recurrent,
    reductions,
    resize,
    sequences,
    shapes,
    signal,
)
from onnx_ci.twin.registry import KERNELS

FAMILIES = (
    activations,
    attention,
    constants,
    control,
    convolution,
    detection,
    elementwise,
    linear,
    normalization,
    pooling,
    quantize,
    recurrent,
    reductions,
    resize,
    sequences,
    shapes,
    signal,
)

__all__ = ["FAMILIES", "KERNELS"]
