"""The geometry that convolution and pooling share: pads, output sizes, and the windows themselves as views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from onnx_ci.twin.registry import Call
from onnx_ci.twin.values import Array


@dataclass(frozen=True, slots=True)
class Windows:
    """How a kernel moves over the spatial axes; all lists by axis.

    Attributes:
        before: Pad ahead of each axis.
        after: Pad behind it, as declared: what ceil mode reaches beyond is `beyond`.
        out: How many windows.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    out: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def beyond(self) -> tuple[int, ...]:
        """Pad behind each axis that the last window needs."""
        reach = zip(self.out, self.strides, self.kernel, self.dilations, self.sizes, self.before, strict=True)
        return tuple(max((o - 1) * s + (k - 1) * d + 1 - n - b, 0) for o, s, k, d, n, b in reach)

    def padded(self, x: Array, fill: float, after: tuple[int, ...] | None = None) -> Array:
        """The values with their spatial axes padded as far as the last window needs."""
        pads = list(zip(self.before, after or self.beyond, strict=True))
        if not any(b or a for b, a in pads):
            return x
        return np.pad(x, [(0, 0), (0, 0), *pads], constant_values=fill)

    def view(self, padded: Array) -> Array:
        """(N, C, *out, *kernel), a view."""
        steps = padded.strides[2:]
        moves = [step * s for step, s in zip(steps, self.strides, strict=True)]
        inner = [step * d for step, d in zip(steps, self.dilations, strict=True)]
        shape = (*padded.shape[:2], *self.out, *self.kernel)
        return as_strided(padded, shape, (*padded.strides[:2], *moves, *inner), writeable=False)


def windows(call: Call, sizes: tuple[int, ...], kernel: tuple[int, ...]) -> Windows:
    """Reads pads, strides and dilations of a node; `auto_pad` wins over pads."""
    rank = len(sizes)
    strides, dilations = _listed(call["strides"], rank), _listed(call["dilations"], rank)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    auto = call["auto_pad"] or "NOTSET"
    if auto.startswith("SAME"):
        out = [-(-n // s) for n, s in zip(sizes, strides, strict=True)]
        need = [max((o - 1) * s + r - n, 0) for o, s, r, n in zip(out, strides, reach, sizes, strict=True)]
        small, large = [n // 2 for n in need], [n - n // 2 for n in need]
        before, after = (small, large) if auto == "SAME_UPPER" else (large, small)
    else:
        pads = call["pads"] if call["pads"] and auto == "NOTSET" else [0] * (2 * rank)
        before, after = pads[:rank], pads[rank:]
        room = [n + b + a - r for n, b, a, r in zip(sizes, before, after, reach, strict=True)]
        # Towards zero, as ONNX Runtime divides: a window too large by less than a stride lies on all of the picture.
        out = [int(free / s) + 1 for free, s in zip(room, strides, strict=True)]
        if call["ceil_mode"]:
            # A window more, unless it would start in the pad behind: as PyTorch and ONNX Runtime do.
            more = zip(room, strides, sizes, before, out, strict=True)
            out = [o + (free % s != 0 and o * s < n + b) for free, s, n, b, o in more]
    out = [max(o, 0) for o in out]
    return Windows(kernel, strides, dilations, tuple(before), tuple(after), tuple(out), sizes)


def _listed(given: Any, rank: int) -> tuple[int, ...]:
    return tuple(int(n) for n in given) if given else (1,) * rank
