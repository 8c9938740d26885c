"""The twin of whole files: where values come from, what is handed back, and what is said where there is no path."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_ci.twin import Twin, Unoracled, amplification, draws, jumps, measured

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


def branching():
    """Both branches and a function hold a constant of the same name; the main graph another one."""
    model = parsed(
        "g (float[n] x, bool c) => (float[n] y) { f = my.Scaled(x)  b = If(c) <then_branch = t () => (float[n] a)"
        " { k = Constant<value = float[1] {0.1}>()  a = Mul(f, k) }, else_branch = e () => (float[n] d)"
        " { k = Constant<value = float[1] {0.3}>()  d = Mul(f, k) }>  y = Identity(b) }"
        ' <domain: "my", opset_import: ["" : 20]> Scaled (x) => (y)'
        " { k = Constant<value = float[1] {0.7}>()  y = Mul(x, k) }"
    )
    return Twin(model)


def test_constants_of_branches_and_functions_are_named_and_changed_too():
    twin, x = branching(), np.array([1.0, 2.0])
    named = [(name, float(value[0])) for name, value in twin.float_constants()]
    assert [name for name, _ in named] == ["my:Scaled:/k", "k", "k"]
    feeds = {"x": x, "c": np.array(True)}
    plain = twin.run(feeds).outputs["y"]
    np.testing.assert_array_equal(twin.run(feeds, change={"k": lambda k: k * 2}).outputs["y"], plain * 2)
    np.testing.assert_array_equal(twin.run(feeds, change={"my:Scaled:/k": lambda k: k * 3}).outputs["y"], plain * 3)
    assert amplification(twin, feeds, ["k"])["y"] == pytest.approx(2.0**-24)
    assert amplification(twin, feeds, ["my:Scaled:/k"])["y"] == pytest.approx(2.0**-24)


def test_a_number_alone_goes_both_ways():
    """0.3 / 0.1 is just below 3 in float64, and with 0.1 rounded up in float32 it would be further below."""
    text = "g (float[n] x) => (float[n] y) { c = Constant<value = float[1] {0.1}>()  q = Div(x, c)  y = Floor(q) }"
    x = np.float32([0.3, 0.5, 0.7]).astype(np.float64)
    assert amplification(Twin(parsed(text)), {"x": x}, ["c"], seeds=2)["y"] > 0.1


def test_jumps_in_reach_are_told_from_what_is_smooth():
    rounded = Twin(parsed("g (float[n, 3] x) => (float[n, 3] y) { h = Mul(x, c)  y = Round(h) }"))
    smooth = Twin(parsed("g (float[n, 3] x) => (float[n, 3] y) { h = Mul(x, c)  y = Exp(h) }"))
    for twin in (rounded, smooth):
        twin.model.graph.initializer.append(numpy_helper.from_array(np.float32([0.7, 1.1, 1.3]), "c"))
    near = np.array([[0.5, 1.5, 2.5], [0.2, 0.1, 0.8]]) / np.float32([0.7, 1.1, 1.3]) * (1 + 2.0**-20)
    for twin, expected in ((Twin(rounded.model), True), (Twin(smooth.model), False)):
        found = amplification(twin, {"x": near}, ["c"])
        (more,) = jumps(twin, {"x": near}, ["c"], found)
        assert (more["y"] > 0.1, more["y"] > 0) == (expected, expected)


def test_a_tie_that_the_order_of_a_sum_breaks_is_a_jump_and_an_exact_mask_is_none():
    text = "{ s = Softmax(x)  i = ArgMax<axis = 1>(s)  f = Cast<to = 1>(i)  y = Exp(f) }"
    tie = parsed(f"g (float[n, 4] x) => (float[n, 1] y) {text}")
    mask = parsed("g (float[n, 4] x) => (float[n, 4] y) { e = Equal(x, x)  f = Cast<to = 1>(e)  y = Mul(f, x) }")
    same = {"x": np.full((1, 4), 0.3)}
    assert next(jumps(Twin(tie), same, [], {}))["y"] > 0
    assert next(jumps(Twin(mask), same, [], {}))["y"] == 0


def test_rounding_is_measured_more_closely_each_time():
    sizes = [one["y"] for one in measured(Twin(linear()), {"x": X}, ["w"])]
    assert sizes == sorted(sizes)
    assert sizes[1:] == [amplification(Twin(linear()), {"x": X}, ["w"])["y"]] * 2
    assert list(draws(Twin(linear()), {"x": X}, [])) == []
