"""Own kernels by family; importing this fills the register."""

from __future__ import annotations

from onnx_ci.twin.kernels import (  # noqa: F401 - each fills the register
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

__all__ = ["KERNELS"]
