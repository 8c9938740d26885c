"""Windows of signals, computed in double from the size alone."""

from __future__ import annotations

import numpy as np

from onnx_ci.twin.registry import Call, Unoracled, kernel
from onnx_ci.twin.values import Array, Value

_COSINES = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}


@kernel(*_COSINES)
def window(call: Call, size: Array) -> Array:
    """A sum of cosines over one period, or over one place less."""
    count = int(size)
    constant, once, twice = _COSINES[call.node.op_type]
    angle = 2 * np.pi * np.arange(count) / (count if call["periodic"] else max(count - 1, 1))
    return constant - once * np.cos(angle) + twice * np.cos(2 * angle)


@kernel("BitCast", "MelWeightMatrix", "TfIdfVectorizer")
def narrow(call: Call, *inputs: Value) -> Value:
    """What is about the bits of a float32, or is computed in float32 by everyone."""
    raise Unoracled(call.node.op_type)
