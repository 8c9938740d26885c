"""The written file beside the module at one size: what counts as the same answer."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_ci.export.probe import _differs

ONE, TWO = np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [(ONE, ONE.copy()), (ONE * np.nan, ONE * np.nan), ([ONE, TWO], [ONE, TWO]), (None, None), ([], [])],
    ids=["tensor", "nan", "sequence", "absent", "empty sequence"],
)
def test_the_same_answer(expected, actual):
    assert _differs(expected, actual, 1e-5) == ""


@pytest.mark.parametrize(
    ("expected", "actual", "said"),
    [
        (ONE, TWO, "is off by relL2 1"),
        (ONE, ONE * np.nan, "has NaN or infinity at other places"),
        (ONE, ONE[:1], "answers with shape [1, 3]"),
        ([ONE, TWO], [ONE, ONE], "is off by relL2 0.5"),
        ([ONE, TWO], [ONE], "another structure"),
        ([ONE], ONE, "another structure"),
        (None, ONE, "another structure"),
    ],
    ids=["values", "nan", "shape", "sequence", "length", "tensor", "absent"],
)
def test_another_answer(expected, actual, said):
    assert said in _differs(expected, actual, 1e-5)
