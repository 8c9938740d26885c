"""Conv and its kin: windows laid out as a matrix, then one product by BLAS."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from onnx_ci.twin.kernels.windows import Windows, windows
from onnx_ci.twin.registry import Call, kernel
from onnx_ci.twin.values import Array

_CHUNK = 1 << 22  # elements of laid-out windows at a time: 32 MiB


@kernel("Conv")
def conv(call: Call, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Of any rank, grouped, dilated."""
    made = convolved(x, weight, windows(call, x.shape[2:], weight.shape[2:]), call["group"] or 1)
    if bias is not None:
        made += bias.reshape([-1] + [1] * (x.ndim - 2))
    return made


def convolved(x: Array, weight: Array, moves: Windows, groups: int) -> Array:
    """The products of all windows with the kernels, (N, M, *out)."""
    padded = moves.padded(x, 0.0)
    made = np.empty((x.shape[0], weight.shape[0], *moves.out))
    if not made.size:
        return made
    if weight.shape[1] == 1 and groups == x.shape[1]:
        return _depthwise(padded, weight, moves, made)
    view, rank = moves.view(padded), len(moves.out)
    kernels = weight.reshape(groups, weight.shape[0] // groups, -1)
    rows = max(_CHUNK // max(x.shape[1] * math.prod(moves.kernel) * math.prod(moves.out[1:]), 1), 1)
    # (C, *out, *kernel) → (C, *kernel, *out): the layout of the weight's rows.
    order = (0, *range(1 + rank, 1 + 2 * rank), *range(1, 1 + rank))
    for item in range(x.shape[0]):
        for start in range(0, moves.out[0], rows):
            part = view[item, :, start : start + rows]
            laid = np.ascontiguousarray(part.transpose(order)).reshape(groups, kernels.shape[2], -1)
            made[item, :, start : start + rows] = (kernels @ laid).reshape(weight.shape[0], *part.shape[1 : 1 + rank])
    return made


def _depthwise(padded: Array, weight: Array, moves: Windows, made: Array) -> Array:
    """One kernel (or several) a channel: a sum over the kernel's places, each a strided view."""
    channels, times = padded.shape[1], weight.shape[0] // padded.shape[1]
    made[:] = 0
    out = made.reshape(made.shape[0], channels, times, *moves.out)
    kernels = weight.reshape(channels, times, *moves.kernel)
    view = moves.view(padded)
    for place in np.ndindex(*moves.kernel):
        factor = kernels[(slice(None), slice(None), *place)].reshape(channels, times, *[1] * len(moves.out))
        out += view[(..., *place)][:, :, None] * factor
    return made


@kernel("ConvTranspose")
def conv_transpose(call: Call, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Each input value lays its kernel down on the output; pads cut the borders off."""
    groups, kernel_sizes, rank = call["group"] or 1, weight.shape[2:], x.ndim - 2
    strides, dilations = call["strides"] or [1] * rank, call["dilations"] or [1] * rank
    before, out = _transposed_sizes(call, x.shape[2:], kernel_sizes)
    each = weight.shape[1]
    kernels = weight.reshape(groups, weight.shape[0] // groups, -1).swapaxes(1, 2)
    whole = [
        max((n - 1) * s + (k - 1) * d + 1, b + o)
        for n, s, k, d, b, o in zip(x.shape[2:], strides, kernel_sizes, dilations, before, out, strict=True)
    ]
    made = np.zeros((x.shape[0], groups * each, *whole))
    for item in range(x.shape[0]):
        laid = kernels @ x[item].reshape(groups, x.shape[1] // groups, -1)
        laid = laid.reshape(groups * each, *kernel_sizes, *x.shape[2:])
        add_windows(made[item], laid, kernel_sizes, strides, dilations)
    made = _cut(made, before, out)
    return made if bias is None else made + bias.reshape([-1] + [1] * rank)


def add_windows(
    into: Array, laid: Array, kernel_sizes: tuple[int, ...], strides: list[int], dilations: list[int]
) -> None:
    """Adds (C, *kernel, *windows) at the windows' places of (C, *sizes)."""
    counts = laid.shape[1 + len(kernel_sizes) :]
    for place in np.ndindex(*kernel_sizes):
        steps = zip(place, strides, dilations, counts, strict=True)
        at = tuple(slice(k * d, k * d + (n - 1) * s + 1, s) for k, s, d, n in steps)
        into[(slice(None), *at)] += laid[(slice(None), *place)]


def _transposed_sizes(call: Call, sizes: tuple[int, ...], kernel_sizes: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """What is cut off before, and the output's sizes."""
    rank = len(sizes)
    strides, dilations = call["strides"] or [1] * rank, call["dilations"] or [1] * rank
    extra = call["output_padding"] or [0] * rank
    auto, pads = call["auto_pad"] or "NOTSET", call["pads"] or [0] * (2 * rank)
    whole = [
        s * (n - 1) + e + (k - 1) * d + 1
        for n, s, e, k, d in zip(sizes, strides, extra, kernel_sizes, dilations, strict=True)
    ]
    if call["output_shape"]:
        out = list(call["output_shape"][-rank:])
    elif auto.startswith("SAME"):
        out = [n * s for n, s in zip(sizes, strides, strict=True)]
    else:
        pads = pads if auto == "NOTSET" else [0] * (2 * rank)
        return list(pads[:rank]), [w - pads[at] - pads[rank + at] for at, w in enumerate(whole)]
    total = [max(w - o, 0) for w, o in zip(whole, out, strict=True)]
    return [t // 2 if auto == "SAME_UPPER" else t - t // 2 for t in total], out


@kernel("Col2Im")
def col2im(call: Call, x: Array, image: Array, block: Array) -> Array:
    """Adds the columns back to where their windows lay."""
    sizes, kernel_sizes = tuple(image.tolist()), tuple(block.tolist())
    moves = windows(call, sizes, kernel_sizes)
    channels = x.shape[1] // math.prod(kernel_sizes)
    whole = [n + b + a for n, b, a in zip(sizes, moves.before, moves.after, strict=True)]
    made = np.zeros((x.shape[0], channels, *whole))
    for item in range(x.shape[0]):
        laid = x[item].reshape(channels, *kernel_sizes, *moves.out)
        add_windows(made[item], laid, kernel_sizes, list(moves.strides), list(moves.dilations))
    return _cut(made, moves.before, sizes)


def _cut(x: Array, before: Sequence[int], sizes: Sequence[int]) -> Array:
    """The spatial axes without their borders."""
    inside = tuple(slice(b, b + n) for b, n in zip(before, sizes, strict=True))
    return x[(slice(None), slice(None), *inside)]
