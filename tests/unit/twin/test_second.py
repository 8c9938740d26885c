"""Own kernels against a second implementation in double, ONNX Runtime's or PyTorch's, at inputs no float32 holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.unit.twin.nodes import by_runtime, fine, near, run
from torch.nn import functional as F

from onnx_ci.twin.kernels.special import erf

X = fine(2, 3, 5, 7)
AXES = np.array([1, -1])


def t(array):
    return torch.from_numpy(np.ascontiguousarray(array))


@pytest.mark.parametrize(
    "op", ["Abs", "Ceil", "Cos", "Exp", "Floor", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Tanh"]
)
def test_functions_of_one_value(op):
    near(run(op, X), by_runtime(op, X))


@pytest.mark.parametrize("op", ["Sqrt", "Log"])
def test_functions_of_one_positive_value(op):
    near(run(op, np.abs(X)), by_runtime(op, np.abs(X)))


@pytest.mark.parametrize("op", ["acos", "asin", "atan", "asinh", "atanh", "tan", "sinh", "cosh", "erf"])
def test_functions_that_the_runtime_has_in_float32_only(op):
    x = fine(4, 9, low=-0.99, high=0.99)
    near(run(op.capitalize(), x), getattr(torch, op)(t(x)).numpy())


def test_acosh():
    x = fine(4, 9, low=1, high=5)
    near(run("Acosh", x), torch.acosh(t(x)).numpy())


def test_erf_to_the_last_bits():
    points = [*np.linspace(-7, 7, 4001), *np.geomspace(1e-300, 1e-3, 300), 0.0, 5.9999, 6.0]
    expected = np.array([math.erf(point) for point in points])
    np.testing.assert_allclose(erf(np.array(points)), expected, rtol=1e-15, atol=0)
    np.testing.assert_array_equal(erf(np.array([np.inf, -np.inf, np.nan, -0.0])), [1, -1, np.nan, -0.0])
    assert erf(np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Pow", "PRelu", "Max", "Min", "Sum"])
def test_functions_of_two_values(op):
    a, b = (np.abs(X), fine(5, 1, seed=1)) if op == "Pow" else (X, fine(3, 1, 1, seed=1))
    version = 16 if op == "PRelu" else 22  # later the runtime has it in float32 only
    near(run(op, a, b, version=version), by_runtime(op, a, b, version=version))


@pytest.mark.parametrize("op", ["Div", "Mod"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_whole_numbers_divide_as_the_runtime_divides_them(op, dtype):
    a, b = (np.array(list, dtype) for list in ([7, -7, 7, -7, 6, 0], [2, 2, -2, -2, -3, 5]))
    np.testing.assert_array_equal(run(op, a, b), by_runtime(op, a, b))
    assert run(op, a, b).dtype == dtype


def test_division_of_whole_numbers_by_zero_ends_no_process():
    np.testing.assert_array_equal(run("Div", np.array([5]), np.array([0])), [0])


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("op", ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"])
def test_reductions(op, keepdims):
    x = np.abs(X) if op == "LogSum" else X
    near(run(f"Reduce{op}", x, AXES, keepdims=keepdims), by_runtime(f"Reduce{op}", x, AXES, keepdims=keepdims))
    near(run(f"Reduce{op}", x, keepdims=keepdims), by_runtime(f"Reduce{op}", x, keepdims=keepdims))


ACTIVATIONS = {
    "Elu": ({"alpha": 0.3}, lambda x: F.elu(x, 0.3)),
    "Celu": ({"alpha": 0.3}, lambda x: F.celu(x, 0.3)),
    "Selu": ({}, F.selu),
    "LeakyRelu": ({"alpha": 0.01}, F.leaky_relu),
    "HardSigmoid": ({"alpha": 1 / 6, "beta": 0.5}, F.hardsigmoid),
    "HardSwish": ({}, F.hardswish),
    "Mish": ({}, F.mish),
    "Softplus": ({}, F.softplus),
    "Softsign": ({}, F.softsign),
    "Shrink": ({"lambd": 0.3, "bias": 0.3}, lambda x: F.softshrink(x, 0.3)),
    "ThresholdedRelu": ({"alpha": 0.3}, lambda x: F.threshold(x, 0.3, 0.0)),
    "Gelu": ({}, F.gelu),
    "Swish": ({"alpha": 1.1}, lambda x: x * torch.sigmoid(1.1 * x)),
    "Softmax": ({"axis": 1}, lambda x: F.softmax(x, 1)),
    "LogSoftmax": ({"axis": -1}, lambda x: F.log_softmax(x, -1)),
}


@pytest.mark.parametrize("op", ACTIVATIONS)
def test_activations(op):
    attributes, second = ACTIVATIONS[op]
    near(run(op, 4 * X, version=24, **attributes), second(4 * t(X)).numpy())


def test_gelu_by_tanh():
    near(run("Gelu", X, approximate="tanh"), F.gelu(t(X), approximate="tanh").numpy())


def test_softmax_before_opset_13_is_over_all_axes_from_one_on():
    near(run("Softmax", X, version=11, axis=2), by_runtime("Softmax", X, version=11, axis=2))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("groups", "each"), [(1, 4), (2, 2), (4, 1), (4, 3)])
def test_conv(rank, groups, each):
    x, weight, bias = fine(2, 4, *[9, 8, 7][:rank]), fine(4 * each, 4 // groups, *[3, 2, 3][:rank]), fine(4 * each)
    attributes = {"strides": [2, 1, 1][:rank], "dilations": [1, 2, 1][:rank], "group": groups}
    pads = [1, 2, 0][:rank]
    conv = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    second = conv(t(x), t(weight), t(bias), attributes["strides"], pads, attributes["dilations"], groups)
    near(run("Conv", x, weight, bias, pads=pads * 2, **attributes), second.numpy())


def test_conv_in_pieces_and_with_uneven_pads():
    x, weight = fine(1, 8, 300, 260), fine(2, 8, 3, 5)
    near(run("Conv", x, weight, pads=[1, 3, 0, 2]), F.conv2d(F.pad(t(x), (3, 2, 1, 0)), t(weight)).numpy())


@pytest.mark.parametrize("auto", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_conv_with_pads_of_its_own(auto):
    x, weight = fine(1, 2, 8, 9), fine(3, 2, 2, 4)
    pads = {"SAME_UPPER": (1, 2, 0, 0), "SAME_LOWER": (2, 1, 0, 0), "VALID": (0, 0, 0, 0)}[auto]
    second = F.conv2d(F.pad(t(x), pads), t(weight), stride=2).numpy()
    near(run("Conv", x, weight, auto_pad=auto, strides=[2, 2]), second)


def test_conv_of_an_empty_batch():
    assert run("Conv", np.zeros((0, 2, 5, 5)), fine(3, 2, 3, 3)).shape == (0, 3, 3, 3)


@pytest.mark.parametrize("groups", [1, 2])
def test_conv_transpose(groups):
    x, weight, bias = fine(2, 4, 5, 6), fine(4, 3, 3, 2), fine(3 * groups)
    second = F.conv_transpose2d(t(x), t(weight), t(bias), (2, 3), (1, 0), (1, 2), groups, (1, 2)).numpy()
    sizes = {"strides": [2, 3], "pads": [1, 0, 1, 0], "output_padding": [1, 2], "dilations": [1, 2]}
    near(run("ConvTranspose", x, weight, bias, group=groups, **sizes), second)


def test_col2im():
    x = fine(2, 3 * 6, 12)
    second = F.fold(t(x), (6, 7), (2, 3), padding=(1, 0), stride=(2, 2)).numpy()
    near(run("Col2Im", x, np.array([6, 7]), np.array([2, 3]), pads=[1, 0, 1, 0], strides=[2, 2]), second)


@pytest.mark.parametrize("size", [9, 10, 11])
@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("counted", [0, 1])
def test_average_pool(size, ceil, counted):
    x = fine(2, 3, size, 8)
    second = F.avg_pool2d(t(x), 3, 2, 1, bool(ceil), bool(counted)).numpy()
    sizes = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4, "ceil_mode": ceil}
    near(run("AveragePool", x, count_include_pad=counted, **sizes), second)
    near(run("MaxPool", x, **sizes), F.max_pool2d(t(x), 3, 2, 1, ceil_mode=bool(ceil)).numpy())


def test_max_pool_of_other_ranks_and_with_places():
    x = fine(2, 3, 6, 7, 8)
    near(run("MaxPool", x, kernel_shape=[2, 2, 2]), F.max_pool3d(t(x), 2, 1).numpy())
    line = fine(2, 3, 9)
    near(run("MaxPool", line, kernel_shape=[2], dilations=[3]), F.max_pool1d(t(line), 2, 1, 0, 3).numpy())
    values, places = run("MaxPool", line[..., :8], outputs=2, kernel_shape=[2], strides=[2])
    near(run("MaxUnpool", values, places, kernel_shape=[2], strides=[2]).reshape(-1)[places], values)


def test_pools_over_all():
    near(run("GlobalAveragePool", X), F.adaptive_avg_pool2d(t(X), 1).numpy())
    near(run("GlobalMaxPool", X), F.adaptive_max_pool2d(t(X), 1).numpy())
    near(run("LpPool", X, kernel_shape=[2, 3], p=3), F.lp_pool2d(t(np.abs(X)), 3.0, (2, 3), 1).numpy())


def test_normalizations():
    scale, bias, mean, variance = fine(3), fine(3, seed=1), fine(3, seed=2), fine(3, seed=3) ** 2 * 1e-5
    near(
        run("BatchNormalization", X, scale, bias, mean, variance, epsilon=1e-5),
        F.batch_norm(t(X), t(mean), t(variance), t(scale), t(bias), eps=1e-5).numpy(),
    )
    small = X * 1e-3
    near(
        run("InstanceNormalization", small, scale, bias, epsilon=1e-5),
        F.instance_norm(t(small), weight=t(scale), bias=t(bias), eps=1e-5).numpy(),
    )
    wide = fine(2, 6, 4, 3) * 1e-3
    scale, bias = fine(6), fine(6, seed=1)
    near(
        run("GroupNormalization", wide, scale, bias, num_groups=2, epsilon=1e-5),
        F.group_norm(t(wide), 2, t(scale), t(bias), 1e-5).numpy(),
    )
    scale, bias = fine(5, 7), fine(5, 7, seed=1)
    made, average, inverse = run("LayerNormalization", small, scale, bias, outputs=3, axis=-2, epsilon=1e-5)
    near(made, F.layer_norm(t(small), (5, 7), t(scale), t(bias), 1e-5).numpy())
    near(average, small.mean(axis=(2, 3), keepdims=True))
    near(inverse, 1 / np.sqrt(small.var(axis=(2, 3), keepdims=True) + 1e-5))
    near(
        run("RMSNormalization", small, scale, version=23, axis=-2, epsilon=1e-5),
        F.rms_norm(t(small), (5, 7), t(scale), 1e-5).numpy(),
    )
    near(run("LRN", X, size=3, alpha=0.1, beta=0.7), F.local_response_norm(t(X), 3, 0.1, 0.7).numpy())
    near(run("LpNormalization", X, axis=1, p=2), F.normalize(t(X), dim=1).numpy())


def test_products():
    a, b, c = fine(3, 5), fine(5, 4), fine(4)
    near(run("Gemm", a, b, c, alpha=0.1, beta=0.3), 0.1 * (a @ b) + 0.3 * c)
    near(run("Gemm", a.T.copy(), b.T.copy(), transA=1, transB=1), a @ b)
    near(run("MatMul", fine(2, 3, 4, 5), b), by_runtime("MatMul", fine(2, 3, 4, 5), b))
    near(run("MatMul", fine(2, 1, 4, 5), fine(3, 5, 2)), by_runtime("MatMul", fine(2, 1, 4, 5), fine(3, 5, 2)))
    near(run("MatMul", fine(5), b), by_runtime("MatMul", fine(5), b))
    near(run("Det", fine(2, 4, 4)), torch.linalg.det(t(fine(2, 4, 4))).numpy())


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(kind, batch_first):
    torch.manual_seed(0)
    layer = getattr(torch.nn, kind)(4, 5, bidirectional=True, batch_first=batch_first, dtype=torch.float64)
    order = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN": [0]}[kind]  # torch's gates in onnx's order

    def gates(name):
        both = [getattr(layer, f"{name}_l0{end}").detach().numpy() for end in ("", "_reverse")]
        return np.stack([np.concatenate([np.split(one, len(order))[at] for at in order]) for one in both])

    bias = np.concatenate([gates("bias_ih"), gates("bias_hh")], axis=1)
    x, h, c = fine(3, 6, 4), fine(2, 3 if batch_first else 6, 5), fine(2, 3 if batch_first else 6, 5, seed=1)
    with torch.no_grad():
        state = (t(h), t(c)) if kind == "LSTM" else t(h)
        y, last = layer(t(x), state)
    last = last if kind == "LSTM" else (last,)
    attributes = {"hidden_size": 5, "direction": "bidirectional", "layout": int(batch_first)}
    attributes |= {"linear_before_reset": 1} if kind == "GRU" else {}
    starts = [x.swapaxes(0, 1) if batch_first else x for x in (h, c)][: len(last)]
    ways = gates("weight_ih"), gates("weight_hh"), bias, None, *starts
    made = run(kind, x, *ways, outputs=1 + len(last), **attributes)
    found = made[0] if batch_first else made[0].transpose(0, 2, 1, 3)
    near(found.reshape(y.shape), y.numpy())
    for one, second in zip(made[1:], last, strict=True):
        near(one.swapaxes(0, 1) if batch_first else one, second.numpy())


def test_recurrent_layers_stop_at_each_items_length():
    weights = fine(1, 20, 4), fine(1, 20, 5, seed=1), fine(1, 40, seed=2)
    x = fine(6, 2, 4)
    y, h, c = run("LSTM", x, *weights, np.array([3, 6], np.int32), outputs=3, hidden_size=5)
    short = run("LSTM", x[:3, :1], *weights, outputs=3, hidden_size=5)
    near(y[:3, :, :1], short[0])
    near(h[:, :1], short[1])
    near(c[:, :1], short[2])
    assert (y[3:, :, 0] == 0).all()


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
@pytest.mark.parametrize("sizes", [(4, 5), (11, 20), (7, 3)])
def test_resize_to_sizes(mode, corners, sizes):
    x = fine(2, 3, 7, 9)
    kind = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}[mode]
    if mode == "nearest":
        second = F.interpolate(t(x), sizes, mode=mode)
        given = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    else:
        second = F.interpolate(t(x), sizes, mode=mode, align_corners=corners)
        given = {"coordinate_transformation_mode": "align_corners" if corners else "half_pixel"}
    near(run("Resize", x, None, None, np.array([2, 3, *sizes]), mode=kind, **given), second.numpy())


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_resize_with_antialias(mode):
    x = fine(1, 2, 9, 8)
    second = F.interpolate(t(x), (4, 13), mode=mode, align_corners=False, antialias=True).numpy()
    given = {"mode": {"bilinear": "linear", "bicubic": "cubic"}[mode], "antialias": 1, "exclude_outside": 1}
    found = run("Resize", x, None, None, np.array([4, 13]), axes=[2, 3], cubic_coeff_a=-0.5, **given)
    near(found, second)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_grid_sample(mode, padding):
    grid = fine(2, 4, 5, 2, low=-1.3, high=1.3)
    second = F.grid_sample(t(X), t(grid), mode, padding, align_corners=False).numpy()
    kind = {"bilinear": "linear", "bicubic": "cubic", "nearest": "nearest"}[mode]
    near(run("GridSample", X, grid, mode=kind, padding_mode=padding), second)


def test_affine_grid():
    theta = fine(2, 2, 3)
    second = F.affine_grid(t(theta), [2, 3, 5, 6], align_corners=False).numpy()
    near(run("AffineGrid", theta, np.array([2, 3, 5, 6])), second)


def test_fourier_transform():
    signal = fine(2, 17, 1)
    second = np.fft.fft(signal[..., 0], axis=1)
    near(run("DFT", signal, None, np.array(1)), np.stack([second.real, second.imag], axis=-1))


@pytest.mark.parametrize("masked", ["", "bool", "float", "causal"])
def test_attention(masked):
    q, k, v = fine(2, 4, 5, 6), fine(2, 2, 7, 6, seed=1), fine(2, 2, 7, 3, seed=2)
    mask = {"bool": fine(5, 7) > -1, "float": fine(2, 1, 5, 7)}.get(masked)
    causal = torch.ones(5, 7, dtype=torch.bool).tril() if masked == "causal" else None
    second = F.scaled_dot_product_attention(
        t(q), t(k), t(v), causal if mask is None else t(mask), scale=0.3, enable_gqa=True
    )
    found = run("Attention", q, k, v, mask, version=23, scale=0.3, is_causal=int(masked == "causal"))
    near(found, second.numpy())


def test_attention_of_flat_heads_with_a_cap():
    q, k, v = fine(2, 5, 24), fine(2, 7, 12, seed=1), fine(2, 7, 6, seed=2)
    heads = [x.reshape(2, -1, count, x.shape[2] // count).swapaxes(1, 2) for x, count in ((q, 4), (k, 2), (v, 2))]
    scores = heads[0] @ np.repeat(heads[1], 2, axis=1).swapaxes(2, 3) / math.sqrt(6)
    weights = F.softmax(t(0.7 * np.tanh(scores / 0.7)), -1).numpy()
    second = (weights @ np.repeat(heads[2], 2, axis=1)).swapaxes(1, 2).reshape(2, 5, -1)
    near(run("Attention", q, k, v, version=23, q_num_heads=4, kv_num_heads=2, softcap=0.7), second)


def test_roi_align_of_a_linear_image_is_its_value_at_the_middle():
    rows, columns = np.mgrid[:12.0, :10.0]
    image = (0.3 * rows + 0.7 * columns)[None, None]
    roi = np.array([[1.1, 2.3, 6.1, 8.3]])
    made = run("RoiAlign", image, roi, np.array([0]), output_height=2, output_width=2, sampling_ratio=1, mode="avg")
    y, x = 2.3 - 0.5 + 1.5 + 3 * np.arange(2)[:, None], 1.1 - 0.5 + 1.25 + 2.5 * np.arange(2)
    near(made[0, 0], 0.3 * y + 0.7 * x)
