"""What is usually done instead of this gate: how each would have judged the same outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

Outputs = Mapping[str, np.ndarray]


def allclose(expected: Outputs, actual: Outputs) -> bool:
    """``assert_allclose`` with rtol 1e-4 and atol 1e-5 on every output, shapes and dtypes included."""
    return _alike(expected, actual) and all(
        np.allclose(actual[name], want, rtol=1e-4, atol=1e-5, equal_nan=True) for name, want in expected.items()
    )


def cosine(expected: Outputs, actual: Outputs) -> bool:
    """Cosine of at least 0.997 of every output as one vector, shapes and dtypes included."""
    return _alike(expected, actual) and all(_cosine(want, actual[name]) >= 0.997 for name, want in expected.items())


def exporter(expected: Sequence[np.ndarray], actual: Sequence[np.ndarray]) -> bool:
    """torch.onnx.export's ``verify=True`` (torch 2.13): outputs in pairs, 5e-3 absolute and 1e-1 relative.

    Missing outputs and dtypes are not looked at there, shapes are broadcast, and a NaN is within both.
    """
    return all(_exporter(want, got) for want, got in zip(expected, actual, strict=False))


def _exporter(want: np.ndarray, got: np.ndarray) -> bool:
    if want.size == 0 or got.size == 0:
        return False
    with np.errstate(all="ignore"):
        try:
            difference = np.abs(want.astype(np.float64) - got.astype(np.float64))
        except ValueError:  # shapes that do not broadcast
            return False
        relative = difference / (np.abs(want.astype(np.float64)) + 1e-7)
    # Written as the exporter has it, so that NaN passes here too.
    return not (difference.max() >= 5e-3) and not (relative.max() >= 1e-1)


def _alike(expected: Outputs, actual: Outputs) -> bool:
    return expected.keys() == actual.keys() and all(
        (want.shape, want.dtype) == (actual[name].shape, actual[name].dtype) for name, want in expected.items()
    )


def _cosine(want: np.ndarray, got: np.ndarray) -> float:
    one, other = (np.nan_to_num(side.astype(np.float64).ravel()) for side in (want, got))
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / lengths if lengths else float(np.array_equal(one, other))
