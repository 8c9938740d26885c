"""How far the rounding of constants that the exporter made can move the outputs: the limit of parity.function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np
from onnx import TensorProto

from onnx_ci.twin.model import Twin
from onnx_ci.twin.values import Array, Value

_ROUNDING: dict[int, float] = {
    TensorProto.FLOAT: 2.0**-24,
    TensorProto.FLOAT16: 2.0**-11,
    TensorProto.BFLOAT16: 2.0**-8,
}
"""Half a unit in the last place by the dtype that a constant is stored in, relative."""


def amplification(twin: Twin, feeds: Mapping[str, Value], made: Collection[str], seeds: int = 4) -> dict[str, float]:
    """By output, the largest relL2 that one rounding of the named constants makes; 0 where none is named.

    Whole numbers are left alone, for nothing was rounded there, and so are the scales of Resize, which decide a size.

    Args:
        twin: The model.
        feeds: One case.
        made: Names of float constants of the main graph that are not the module's own.
        seeds: How many draws of the signs.
    """
    plain = twin.run(feeds).outputs
    largest = dict.fromkeys(plain, 0.0)
    step = _steps(twin, made)
    for seed in range(seeds if step else 0):
        change = {name: _rounded(size, np.random.default_rng([seed, at])) for at, (name, size) in enumerate(step)}
        moved = twin.run(feeds, change=change).outputs
        for name in largest:
            largest[name] = max(largest[name], _relative(moved[name], plain[name]))
    return largest


def _steps(twin: Twin, made: Collection[str]) -> list[tuple[str, float]]:
    """The constants to move, with the rounding of each."""
    fixed = {
        name for node in twin.model.graph.node if node.op_type in ("Resize", "Upsample") for name in node.input[1:]
    }
    wanted = set(made) - fixed
    found = ((name, _ROUNDING.get(tensor.data_type, 0.0)) for name, tensor in twin.float_tensors() if name in wanted)
    return [(name, size) for name, size in found if size]


def _rounded(size: float, rng: np.random.Generator) -> Callable[[Array], Array]:
    def move(constant: Array) -> Array:
        signs = rng.integers(0, 2, constant.shape) * 2 - 1
        return np.where(constant == np.rint(constant), constant, constant * (1 + size * signs))

    return move


def _relative(moved: Value, plain: Value) -> float:
    """relL2 over the places where both are finite; sequences as one long vector, exact dtypes not at all."""
    if isinstance(plain, list) and isinstance(moved, list):
        pairs = zip(moved, plain, strict=False)
        return max((_relative(a, b) for a, b in pairs), default=0.0)
    if not isinstance(plain, np.ndarray) or not isinstance(moved, np.ndarray):
        return 0.0
    if plain.dtype.kind not in "fc" or moved.shape != plain.shape:
        return 0.0
    both = np.isfinite(plain) & np.isfinite(moved)
    norm = float(np.linalg.norm(plain[both]))
    return float(np.linalg.norm((moved - plain)[both])) / norm if norm else 0.0
