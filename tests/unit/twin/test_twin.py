"""The twin of whole files: where values come from, what is handed back, and what is said where there is no path."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_ci.twin import Twin, Unoracled, amplification

WEIGHT = np.random.default_rng(0).standard_normal((3, 2)).astype(np.float32)
X = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)


def parsed(text):
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20, "my" : 1]>\n{text}')


def linear(weight=WEIGHT):
    model = parsed("g (float[n, 3] x) => (float[n, 2] y) { h = MatMul(x, w)  y = Add(h, b) }")
    model.graph.initializer.extend(
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.array([0.1, 2.0], weight.dtype), "b")]
    )
    return model


def test_floats_are_widened_and_nothing_is_rounded():
    run = Twin(linear()).run({"x": X}, keep=["h", "w"])
    want = X.astype(np.float64) @ WEIGHT.astype(np.float64)
    np.testing.assert_array_equal(run.kept["h"], want)
    np.testing.assert_array_equal(run.outputs["y"], want + np.array([np.float32(0.1), 2.0], np.float64))
    assert run.kept["w"].dtype == np.float64
    assert run.by_reference == []


def test_weights_beside_the_file_are_read_from_there(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save_model(linear(), path, save_as_external_data=True, location="model.onnx.data", size_threshold=0)
    twin = Twin.open(path)
    np.testing.assert_array_equal(twin.run({"x": X}).outputs["y"], Twin(linear()).run({"x": X}).outputs["y"])
    assert {name: value.shape for name, value in twin.float_constants()} == {"w": (3, 2), "b": (2,)}


@pytest.mark.parametrize("dtype", [np.float16, helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)])
def test_halves_are_widened_and_casts_among_floats_do_nothing(dtype):
    text = "g (float[n, 3] x) => (float16[n, 3] y) { a = Cast<to = 1>(x)  b = Cast<to = 10>(a)  y = Mul(b, c) }"
    model = parsed(text)
    model.graph.initializer.append(numpy_helper.from_array(np.full(3, 0.1).astype(dtype), "c"))
    fine = np.array([[1.0 + 2.0**-40, 1e30, 1e-30]])
    np.testing.assert_array_equal(Twin(model).run({"x": fine}).outputs["y"], fine * float(np.array(0.1, dtype)))


def test_a_constant_changes_for_one_run_only():
    twin = Twin(linear())
    plain = twin.run({"x": X}).outputs["y"]
    moved = twin.run({"x": X}, change={"b": lambda b: b + 1}).outputs["y"]
    np.testing.assert_allclose(moved, plain + 1, rtol=1e-15)
    np.testing.assert_array_equal(twin.run({"x": X}).outputs["y"], plain)


def test_constant_nodes_count_as_constants():
    model = parsed("g (float[n, 3] x) => (float[n, 3] y) { c = Constant<value = float[1] {0.1}>()  y = Mul(x, c) }")
    twin = Twin(model)
    assert [name for name, _ in twin.float_constants()] == ["c"]
    moved = twin.run({"x": X}, change={"c": lambda c: c * 0 + 2}).outputs["y"]
    np.testing.assert_array_equal(moved, X.astype(np.float64) * 2)


def test_amplification_is_what_one_rounding_of_the_constants_does():
    made = amplification(Twin(linear()), {"x": X}, ["w"])
    assert 2.0**-26 < made["y"] < 2.0**-22
    assert amplification(Twin(linear()), {"x": X}, []) == {"y": 0.0}


def test_amplification_draw_by_draw_is_the_amplification():
    each = [amplification(Twin(linear()), {"x": X}, ["w"], seeds=1, first=at)["y"] for at in range(4)]
    assert len(set(each)) > 1
    assert max(each) == amplification(Twin(linear()), {"x": X}, ["w"])["y"]


def test_amplification_leaves_whole_numbers_alone():
    assert amplification(Twin(linear(np.ones((3, 2), np.float32))), {"x": X}, ["w"])["y"] == 0


def test_operators_without_a_path_are_named():
    with pytest.raises(Unoracled, match=r"^unoracled: my:Op$"):
        Twin(parsed("g (float[n] x) => (float[n] y) { y = my.Op(x) }")).run({"x": X[0]})
    with pytest.raises(Unoracled, match=r"^unoracled: RandomNormalLike$"):
        Twin(parsed("g (float[n] x) => (float[n] y) { y = RandomNormalLike(x) }")).run({"x": X[0]})


def test_what_fails_inside_is_said_of_its_operator():
    with pytest.raises(Unoracled, match=r"^unoracled: MatMul: "):
        Twin(linear()).run({"x": X.T})
    with pytest.raises(Unoracled, match=r"input x is missing"):
        Twin(linear()).run({})


def test_inner_values_are_dropped_after_their_last_use():
    body = " ".join(f"h{at + 1} = Neg(h{at})" for at in range(8))
    twin = Twin(parsed(f"g (float[n] x) => (float[n] y) {{ h0 = Neg(x) {body} y = Add(h8, h0) }}"))
    drops = [step.drops for step in twin._plan.steps]
    assert drops[0] == ("x",)
    assert set(drops[-1]) == {"h8", "h0"}
    np.testing.assert_array_equal(twin.run({"x": X[0]}).outputs["y"], -2 * X[0].astype(np.float64))


def test_changes_that_go_in_step_give_what_they_give_alone():
    twin = Twin(linear())
    changes = [{}, {"w": lambda w: w * 2}, {"b": lambda b: b + 1}]
    together = [run.outputs["y"] for run in twin.run_all({"x": X}, changes)]
    for change, found in zip(changes, together, strict=True):
        np.testing.assert_array_equal(found, twin.run({"x": X}, change=change).outputs["y"])
