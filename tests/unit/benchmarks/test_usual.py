"""The usual checks are held to what they really do, their blind spots included."""

from __future__ import annotations

import numpy as np
from benchmarks.mutation import usual
from benchmarks.mutation.feeds import drawn
from benchmarks.mutation.table import render

from onnx_ci.records.contract import DimContract, TensorContract

ONE = {"y": np.array([[1.0, -2.0]], np.float32)}


def changed(by: float) -> dict[str, np.ndarray]:
    return {"y": ONE["y"] + np.float32(by)}


def test_allclose_looks_at_names_shapes_and_values():
    assert usual.allclose(ONE, changed(1e-5))
    assert not usual.allclose(ONE, changed(1e-3))
    assert not usual.allclose(ONE, {})
    assert not usual.allclose(ONE, {"y": ONE["y"][0]})


def test_cosine_does_not_see_a_scale():
    assert usual.cosine(ONE, {"y": 2 * ONE["y"]})
    assert not usual.cosine(ONE, {"y": -ONE["y"]})


def test_the_exporters_check_lets_through_what_it_lets_through():
    y = ONE["y"]
    assert usual.exporter([y], [y + np.float32(4e-3)])
    assert not usual.exporter([y], [y + np.float32(6e-3)])
    assert usual.exporter([y], [y * np.nan])
    assert usual.exporter([y, y], [y])
    assert usual.exporter([y], [np.repeat(y, 3, axis=0)])
    assert not usual.exporter([y], [np.zeros((1, 3), np.float32)])


def test_inputs_come_from_both_ends_of_the_declared_range_first():
    tensor = TensorContract(name="x", dtype="int64", shape=["n", 2], values=[3.0, 5.0])
    inputs = drawn(
        [tensor], {"n": DimContract(min=2, max=9, multiple_of=4)}, np.random.default_rng(0), inside=1000, at_ends=1000
    )
    shapes = [next(inputs)["x"].shape for _ in range(8)]
    assert shapes[:2] == [(4, 2), (8, 2)]
    assert set(shapes) == {(4, 2), (8, 2)}
    assert set(next(inputs)["x"].ravel()) <= {3, 5}


def test_a_table_of_nothing_has_its_headings():
    assert "| **all** | 0 | – |" in render([])
