"""Own kernels by family; importing this fills the register."""

from __future__ import annotations

from onnx_ci.twin.kernels import constants, control, sequences
from onnx_ci.twin.registry import KERNELS

__all__ = ["KERNELS", "constants", "control", "sequences"]
