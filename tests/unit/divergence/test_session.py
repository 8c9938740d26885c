"""The optimization that changes an answer is found by halves, among those that the runtime applied."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_ci.divergence.session import CpuSession, applied_optimizers, culprit

NAMES = [f"Fusion{at}" for at in range(11)]


@pytest.mark.parametrize("guilty", NAMES)
def test_one_culprit_is_named(guilty):
    tried = []

    def right(without):
        tried.append(without)
        return guilty in without

    assert culprit(NAMES, right) == [guilty]
    assert len(tried) < 12


def test_two_that_do_the_same_in_turn_are_both_named():
    assert culprit(NAMES, lambda without: {"Fusion3", "Fusion9"} <= set(without)) == ["Fusion3", "Fusion9"]


def test_none_is_named_where_none_is_at_fault():
    assert culprit(NAMES, lambda without: False) == []
    assert culprit([], lambda without: True) == []


def batch_norm(path):
    """A convolution by 1e30 and a batch norm by 1e25: each is harmless, and their product is no float32."""
    weights = {"w": np.full((1, 1, 1, 1), 1e30), "one": np.full(1, 1e10), "zero": np.zeros(1)}
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]>'
        "g (float[1,1,2,2] x) => (float[1,1,2,2] y) {"
        " a = Conv(x, w)"
        " y = BatchNormalization<epsilon = 1e-30>(a, one, zero, zero, zero) }"
    )
    for name, value in weights.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(value.astype(np.float32), name))
    onnx.save(model, path)
    return {"x": np.full((1, 1, 2, 2), 1e-30, np.float32)}


def test_a_real_optimization_is_caught(tmp_path, capfd):
    file = tmp_path / "m.onnx"
    feeds = batch_norm(file)

    def right(without=(), **how):
        return bool(np.isfinite(CpuSession(file, without=without, **how).run(feeds)["y"]).all())

    assert right(optimized=False)
    assert not right()
    names = applied_optimizers(lambda level: CpuSession(file, log_level=level))
    assert culprit(names, right) == ["ConvBNFusion"]
    assert capfd.readouterr().err == ""
