"""What a cast to float64 gets wrong if nobody looks: each trap by itself."""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.unit.twin.nodes import fine, near, run

from onnx_ci.twin import Twin, Unoracled, amplification
from onnx_ci.twin.attributes import meant

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 7


def outputs(text, functions="", **feeds):
    """The outputs of a graph in onnx's text form, by name."""
    opsets = '"" : 21, "local" : 1'
    model = onnx.parser.parse_model(f"<ir_version: 10, opset_import: [{opsets}]>\n{text}\n{functions}")
    return Twin(model).run(feeds).outputs


@pytest.mark.parametrize(
    "number", [1e-5, 1e-12, 0.01, 0.1, 1.3, 3.14159, 1 / 6, 1 / 3, 2 / 7, 1 / math.sqrt(8), 1 / math.sqrt(80), 12345.5]
)
def test_a_float_attribute_is_the_number_that_was_written(number):
    assert meant(float(np.float32(number))) == pytest.approx(number, rel=3e-16, abs=0)
    assert meant(-float(np.float32(number))) == pytest.approx(-number, rel=3e-16, abs=0)


def test_what_an_attribute_meant_is_never_beyond_its_rounding():
    for number in np.random.default_rng(0).standard_normal(2000).astype(np.float32):
        assert np.float32(meant(float(number))) == number


@pytest.mark.parametrize("number", [0.0, 1.0, -1.0, math.inf, -math.inf, 3.4028234663852886e38, 0.1])
def test_numbers_that_float32_did_not_round_stay(number):
    assert meant(number) == number


def test_epsilon_at_a_tiny_variance():
    ones, zeros = np.ones(3, np.float64), np.zeros(3)
    x = fine(2, 3, 4)
    near(run("BatchNormalization", x, ones, zeros, zeros, zeros, epsilon=1e-12), x / np.sqrt(1e-12), 1e-15)


def test_selu_takes_its_constants_to_the_end():
    assert run("Selu", np.ones(1))[0] == 1.0507009873554804934193349852946


def test_resize_takes_its_size_from_the_float32_product_and_coordinates_from_the_number_meant():
    x = fine(1, 1, 50, 50)
    scales = np.array([1, 1, 1.3, 1.3], np.float32)
    made = run("Resize", x, None, scales, mode="linear", coordinate_transformation_mode="half_pixel")
    assert made.shape == (1, 1, 65, 65)  # 50 · float32(1.3) is 64.99999… in float64
    row = run("Resize", np.arange(50.0)[None, None, None], None, np.array([1, 1, 1, 1.3], np.float32), mode="linear")
    near(row[0, 0, 0, 1:-1], ((np.arange(65) + 0.5) / 1.3 - 0.5)[1:-1], 1e-15)


def test_amplification_leaves_the_scales_of_resize_alone():
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]>
        g (float[1, 1, 50] x) => (float[1, 1, n] y) <float[3] s = {1.0, 1.0, 1.3}> { y = Resize(x, , s) }"""
    )
    assert amplification(Twin(model), {"x": fine(1, 1, 50)}, ["s"]) == {"y": 0.0}


def test_constants_in_attributes():
    made = outputs(
        """g () => (float a, float[2] b, int64 c, int64[2] d, string e) {
            a = Constant<value_float = 0.1>()
            b = Constant<value_floats = [0.1, 0.3]>()
            c = Constant<value_int = 3>()
            d = Constant<value_ints = [3, 4]>()
            e = Constant<value_string = "word">()
        }"""
    )
    assert made["a"] == 0.1
    np.testing.assert_array_equal(made["b"], [0.1, 0.3])
    assert made["c"].dtype == made["d"].dtype == np.int64
    assert made["e"].item() == "word"


def test_constant_of_shape_without_a_value_is_a_float_zero():
    made = run("ConstantOfShape", np.array([2, 0, 3]))
    assert made.shape == (2, 0, 3)
    assert made.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float32, np.float16, helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)])
def test_constant_of_shape_fills_with_the_number_that_was_written(dtype):
    value = numpy_helper.from_array(np.array([0.7], dtype))
    assert run("ConstantOfShape", np.array([2]), value=value).tolist() == [0.7, 0.7]
    whole = numpy_helper.from_array(np.array([7]))
    assert run("ConstantOfShape", np.array([2]), value=whole).dtype == np.int64


def test_what_constant_of_shape_fills_with_counts_as_a_constant():
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]>
        g (int64[1] n) => (float[k] y) { y = ConstantOfShape<value = float[1] {0.7}>(n) }"""
    )
    twin, feeds = Twin(model), {"n": np.array([3])}
    assert [name for name, _ in twin.float_constants()] == ["y"]
    assert 2.0**-25 < amplification(twin, feeds, ["y"])["y"] < 2.0**-23


def test_eye_and_range_and_windows_are_in_double():
    near(run("EyeLike", np.ones((2, 3), np.int32), dtype=1), np.eye(2, 3))
    near(run("Range", *(np.array(number) for number in (0.1, 1.0, 0.3))), 0.1 + 0.3 * np.arange(3))
    near(run("HannWindow", np.array(9)), 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(9) / 9))


def test_one_hot_keeps_its_values_double():
    values = np.array([0.1 + 2**-50, 1 / 3])
    near(run("OneHot", np.array([1, -1, 9]), np.array(3), values), values[np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])])


@pytest.mark.parametrize("to", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE])
def test_casts_among_floats_do_nothing(to):
    x = fine(5)
    np.testing.assert_array_equal(run("Cast", x, to=to), x)
    np.testing.assert_array_equal(run("CastLike", x, np.ones(1, np.float16)), x)


def test_casts_to_whole_numbers_cut_off():
    np.testing.assert_array_equal(run("Cast", np.array([1.9, -1.9, 0.5]), to=TensorProto.INT64), [1, -1, 0])
    np.testing.assert_array_equal(run("Cast", np.array([0.0, 0.5]), to=TensorProto.BOOL), [False, True])


def test_casts_that_round_have_no_twin():
    with pytest.raises(Unoracled, match="unoracled: Cast: to float8_e4m3fn"):
        run("Cast", fine(3), to=TensorProto.FLOAT8E4M3FN)


@pytest.mark.parametrize("sign", [1, -1])
def test_if_sees_what_lies_around_it(sign):
    made = outputs(
        """g (float[3, 4] x, bool c) => (float[3, 4] y) {
            h = Mul(x, x)
            y = If(c) <
                then_branch = yes () => (float[3, 4] a) <float[1] w = {0.1}> { a = Mul(h, w) },
                else_branch = no () => (float[3, 4] b) { b = Neg(h) }
            >
        }""",
        x=X,
        c=np.array(sign > 0),
    )
    x = X.astype(np.float64)
    np.testing.assert_array_equal(made["y"], x * x * float(np.float32(0.1)) if sign > 0 else -(x * x))


def test_loop_carries_scans_and_ends_by_its_condition():
    made = outputs(
        """g (float x, int64 n, bool go) => (float last, float[k] all) {
            last, all = Loop(n, go, x) <
                body = b (int64 i, bool c, float v) => (bool more, float next, float shown) {
                    next = Mul(v, x)
                    five = Constant<value_float = 5.0>()
                    more = Less(next, five)
                    shown = Identity(next)
                }
            >
        }""",
        x=np.array(1.5, np.float32),
        n=np.array(10),
        go=np.array(True),
    )
    np.testing.assert_array_equal(made["all"], [1.5**2, 1.5**3, 1.5**4])
    assert made["last"] == 1.5**4


def test_loop_of_no_trip_gives_an_empty_scan():
    made = outputs(
        """g (float[3] x, int64 n, bool go) => (float[3] last, float[k, 3] all) {
            last, all = Loop(n, go, x) <
                body = b (int64 i, bool c, float[3] v) => (bool c2, float[3] next, float[3] shown) {
                    c2 = Identity(c)
                    next = Mul(v, v)
                    shown = Identity(v)
                }
            >
        }""",
        x=X[0, :3],
        n=np.array(0),
        go=np.array(True),
    )
    assert made["all"].shape == (0, 3)
    assert made["all"].dtype == np.float64


def test_scan_runs_over_an_axis_and_back():
    made = outputs(
        """g (float s, float[3, 4] x, float w) => (float last, float[4] all) {
            last, all = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
                body = b (float carried, float[3] row) => (float next, float shown) {
                    total = ReduceSum<keepdims = 0>(row)
                    weighed = Mul(total, w)
                    next = Add(carried, weighed)
                    shown = Identity(next)
                }
            >(s, x)
        }""",
        s=np.array(0.25, np.float32),
        x=X,
        w=np.array(0.1, np.float32),
    )
    rows = X.astype(np.float64).sum(axis=0)[::-1] * float(np.float32(0.1))
    near(made["all"], 0.25 + np.cumsum(rows), 1e-15)


def test_functions_of_the_file_and_their_attributes():
    made = outputs(
        "g (float[3, 4] x) => (float[3, 4] y) { y = local.Leaky<slope = 0.3>(x, x) }",
        """<domain: "local", opset_import: ["" : 21]>
        Leaky <slope, unused> (a, b) => (c) { n = Neg(a)  c = LeakyRelu<alpha: float = @slope>(n) }""",
        x=X,
    )
    np.testing.assert_array_equal(made["y"], -X.astype(np.float64) * 0.3)


def test_a_function_does_not_see_what_lies_around_it():
    with pytest.raises(Unoracled, match="x is read before"):
        outputs(
            "g (float[3, 4] x) => (float[3, 4] y) { y = local.F(x) }",
            '<domain: "local", opset_import: ["" : 21]> F (a) => (c) { c = Add(a, x) }',
            x=X,
        )


def test_sequences_and_optionals():
    made = outputs(
        """g (float[3, 4] x, int64 one) => (float[a, b] y, int64 n, bool h, seq(float[c, d]) s) {
            e = SequenceEmpty()
            f = SequenceInsert(e, x)
            s = SequenceInsert(f, x)
            y = ConcatFromSequence<axis = 1>(s)
            n = SequenceLength(s)
            o = Optional(x)
            h = OptionalHasElement(o)
        }""",
        x=X,
        one=np.array(1),
    )
    assert made["y"].shape == (3, 8)
    assert (made["n"], made["h"]) == (2, True)
    assert [item.dtype for item in made["s"]] == [np.float64, np.float64]


def test_an_optional_that_is_absent():
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [2]))
    node = helper.make_node("OptionalHasElement", ["x"], ["y"])
    given = helper.make_value_info("x", optional)
    graph = helper.make_graph([node], "g", [given], [helper.make_tensor_value_info("y", TensorProto.BOOL, [])])
    assert not Twin(helper.make_model(graph)).run({"x": None}).outputs["y"]


def test_tensors_without_elements():
    empty = np.zeros((0, 3), np.float32)
    assert run("Softmax", empty).shape == (0, 3)
    assert run("MatMul", empty, fine(3, 2)).shape == (0, 2)
    assert run("Reshape", empty, np.array([-1, 3])).shape == (0, 3)
    assert run("ReduceSum", empty, np.array([0]), keepdims=0).tolist() == [0, 0, 0]
    assert run("ReduceMax", empty, np.array([0]), version=20, keepdims=0).tolist() == [-math.inf] * 3
    assert run("NonZero", empty).shape == (2, 0)


def test_a_sparse_constant_is_filled_in():
    values = numpy_helper.from_array(np.array([0.5, 2.0], np.float32), "w")
    places = numpy_helper.from_array(np.array([1, 5]), "at")
    graph = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["y"])],
        "g",
        [],
        [helper.make_tensor_value_info("y", 1, [2, 3])],
        sparse_initializer=[helper.make_sparse_tensor(values, places, [2, 3])],
    )
    assert Twin(helper.make_model(graph)).run({}).outputs["y"].tolist() == [[0, 0.5, 0], [0, 0, 2]]


def test_masks_of_the_smallest_float32_still_mask():
    mask = np.array([0, np.finfo(np.float32).min], np.float32)
    assert run("Softmax", np.array([0.3, 9.0]) + mask).tolist() == [1, 0]


@pytest.mark.parametrize(("op", "version"), [("Dropout", 13), ("BatchNormalization", 15)])
def test_training_has_no_twin(op, version):
    more = [np.array(0.5), np.array(True)] if op == "Dropout" else [np.ones(4)] * 4
    given = {} if op == "Dropout" else {"training_mode": 1, "outputs": 3}
    with pytest.raises(Unoracled, match=f"unoracled: {op}: training mode"):
        run(op, X.astype(np.float64), *more, version=version, **given)


def test_dropout_in_eval_mode_does_nothing():
    made, mask = run("Dropout", X, np.array(0.5), outputs=2)
    np.testing.assert_array_equal(made, X)
    assert mask.all()


def test_quantizing_and_back():
    x, scale, zero = fine(2, 3, 4), fine(3) ** 2 + 0.01, np.array([0, 3, -5], np.int8)
    whole = run("QuantizeLinear", x, scale, zero, axis=1)
    column = scale[:, None]
    np.testing.assert_array_equal(whole, np.clip(np.rint(x / column) + zero[:, None], -128, 127).astype(np.int8))
    near(run("DequantizeLinear", whole, scale, zero, axis=1), (whole - zero[:, None].astype(np.float64)) * column)


def test_boxes_that_overlap_are_suppressed_by_score():
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]]], np.float32)
    scores = np.array([[[0.8, 0.9, 0.3]]], np.float32)
    limits = np.array([9]), np.array([0.5], np.float32), np.array([0.2], np.float32)
    assert run("NonMaxSuppression", boxes, scores, *limits).tolist() == [[0, 0, 1], [0, 0, 2]]


@pytest.mark.parametrize(("stride", "count"), [(13, 0), (13, 1), (9, 0)])
def test_a_window_larger_than_the_picture_by_less_than_a_stride_lies_on_all_of_it(stride, count):
    x = fine(1, 2, 1, 5)
    moves = {"kernel_shape": [1, 13], "strides": [1, stride]}
    near(run("AveragePool", x, count_include_pad=count, **moves), x.mean(-1, keepdims=True), 1e-15)
    near(run("MaxPool", x, **moves), x.max(-1, keepdims=True), 0)
    assert run("AveragePool", x, kernel_shape=[1, 13], strides=[1, 8]).shape == (1, 2, 1, 0)  # as the runtime has it


def test_a_window_of_thousands_of_places_takes_no_more_than_the_picture():
    x = fine(1, 2, 3, 5)
    moves = {"kernel_shape": [40_000, 40_000], "strides": [40_000, 40_000], "ceil_mode": 1}
    near(run("AveragePool", x, **moves), x.mean((-2, -1), keepdims=True), 1e-15)
    near(run("MaxPool", x, **moves), x.max((-2, -1), keepdims=True), 0)
    near(run("LpPool", x, **moves), np.sqrt((x**2).sum((-2, -1), keepdims=True)), 1e-15)
