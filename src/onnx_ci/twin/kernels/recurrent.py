"""RNN, GRU and LSTM: both directions, lengths by item, peepholes, clipping, any of the activations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnx_ci.twin.kernels.activations import PLAIN, elu, hard_sigmoid
from onnx_ci.twin.registry import Call, kernel
from onnx_ci.twin.values import Array

Activation = Callable[[Array], Array]
_WITH_NUMBERS: dict[str, tuple[Callable[..., Array], tuple[float | None, float | None]]] = {
    "affine": (lambda x, a, b: a * x + b, (1.0, 0.0)),
    "elu": (lambda x, a, _: elu(x, a), (1.0, None)),
    "hardsigmoid": (hard_sigmoid, (0.2, 0.5)),
    "leakyrelu": (lambda x, a, _: np.where(x >= 0, x, a * x), (0.01, None)),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), (1.0, 1.0)),
    "thresholdedrelu": (lambda x, a, _: np.where(x >= a, x, 0.0), (1.0, None)),
}
_WITHOUT: dict[str, Activation] = {
    "tanh": np.tanh,
    **{name.lower(): PLAIN[name] for name in ("Relu", "Sigmoid", "Softsign", "Softplus")},
}


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction's weights, (gates, H, …) each, and its start.

    Attributes:
        w: Of the input. `r`: of the state; `wb` and `rb`: their biases.
        h: The state to begin with, (N, H); `c`: the cell's, for LSTM.
        peep: LSTM's peepholes, (3, H); None without.
        functions: The activations, in the operator's order.
    """

    w: Array
    r: Array
    wb: Array
    rb: Array
    h: Array
    c: Array
    peep: Array | None
    functions: list[Activation]


Step = Callable[[Array, Array, Array], tuple[Array, Array]]
"""(input's share of the gates, h, c) → (h, c)."""


@kernel("RNN", "GRU", "LSTM")
def recurrent(call: Call, x: Array, w: Array, r: Array, *others: Array | None) -> tuple[Any, ...]:
    """All states, the last state, and for LSTM the last cell."""
    op, batch_first = call.node.op_type, bool(call["layout"])
    x = x.swapaxes(0, 1) if batch_first else x
    given = dict(enumerate(others))
    bias, lengths, starts = given.get(0), given.get(1), [given.get(at) for at in (2, 3, 4)]
    if batch_first:
        starts = [None if start is None else start.swapaxes(0, 1) for start in starts[:2]] + starts[2:]
    counts = np.full(x.shape[1], x.shape[0]) if lengths is None else lengths
    names = ["reverse"] if call["direction"] == "reverse" else ["forward", "reverse"][: w.shape[0]]
    each = zip(names, _directions(call, x, w, r, bias, starts), strict=True)
    made = [_run(_STEPS[op](call, way), x, counts, way, name == "reverse") for name, way in each]
    rows, last, cells = zip(*made, strict=True)
    y, h, c = np.stack(rows, axis=1), np.stack(last), np.stack(cells)
    if batch_first:
        y, h, c = y.transpose(2, 0, 1, 3), h.swapaxes(0, 1), c.swapaxes(0, 1)
    return (y, h, c) if op == "LSTM" else (y, h)


def _run(step: Step, x: Array, counts: Array, way: Direction, back: bool) -> tuple[Array, Array, Array]:
    """Over time; an item that has ended keeps its state and gives zeros."""
    shares = np.einsum("tni,ghi->tgnh", x, way.w, optimize=True) + way.wb[:, None]
    h, c, y = way.h, way.c, np.zeros((x.shape[0], *way.h.shape))
    for at in range(x.shape[0] - 1, -1, -1) if back else range(x.shape[0]):
        going = (at < counts)[:, None]
        new_h, new_c = step(shares[at], h, c)
        h, c = np.where(going, new_h, h), np.where(going, new_c, c)
        y[at] = np.where(going, h, 0.0)
    return y, h, c


def _rnn(call: Call, way: Direction) -> Step:
    clipped, f = _clip(call), way.functions[0]

    def step(share: Array, h: Array, c: Array) -> tuple[Array, Array]:
        return f(clipped(share[0] + h @ way.r[0].T + way.rb[0])), c

    return step


def _gru(call: Call, way: Direction) -> Step:
    clipped, (f, g) = _clip(call), way.functions[:2]
    before = bool(call["linear_before_reset"])

    def step(share: Array, h: Array, c: Array) -> tuple[Array, Array]:
        update = f(clipped(share[0] + h @ way.r[0].T + way.rb[0]))
        reset = f(clipped(share[1] + h @ way.r[1].T + way.rb[1]))
        state = h if before else reset * h
        inner = state @ way.r[2].T + way.rb[2]
        inner = reset * inner if before else inner
        return (1 - update) * g(clipped(share[2] + inner)) + update * h, c

    return step


def _lstm(call: Call, way: Direction) -> Step:
    clipped, (f, g, last) = _clip(call), way.functions[:3]
    peep = np.zeros((3, way.h.shape[1])) if way.peep is None else way.peep
    coupled = bool(call["input_forget"])

    def step(share: Array, h: Array, c: Array) -> tuple[Array, Array]:
        gates = [share[at] + h @ way.r[at].T + way.rb[at] for at in range(4)]
        enter = f(clipped(gates[0] + peep[0] * c))
        keep = 1 - enter if coupled else f(clipped(gates[2] + peep[2] * c))
        cell = keep * c + enter * g(clipped(gates[3]))
        return f(clipped(gates[1] + peep[1] * cell)) * last(cell), cell

    return step


_STEPS: dict[str, Callable[[Call, Direction], Step]] = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}
_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def _clip(call: Call) -> Activation:
    limit = call["clip"]
    return (lambda x: x) if not limit else (lambda x: np.clip(x, -limit, limit))


def _directions(
    call: Call, x: Array, w: Array, r: Array, bias: Array | None, starts: list[Array | None]
) -> Iterator[Direction]:
    op, hidden = call.node.op_type, r.shape[2]
    gates = r.shape[1] // hidden
    functions = _functions(call, _DEFAULTS[op] * w.shape[0])
    each = len(functions) // w.shape[0]
    initial_h, initial_c, peep = starts
    for at in range(w.shape[0]):
        both = np.zeros((2, gates, hidden)) if bias is None else bias[at].reshape(2, gates, hidden)
        start = np.zeros((x.shape[1], hidden))
        yield Direction(
            w=w[at].reshape(gates, hidden, -1),
            r=r[at].reshape(gates, hidden, -1),
            wb=both[0],
            rb=both[1],
            h=start if initial_h is None else initial_h[at],
            c=start if initial_c is None else initial_c[at],
            peep=None if peep is None else peep[at].reshape(3, hidden),
            functions=functions[at * each : (at + 1) * each],
        )


def _functions(call: Call, defaults: list[str]) -> list[Activation]:
    """The activations; those that take numbers take them from the lists in order, then by default."""
    alphas, betas = iter(call["activation_alpha"] or []), iter(call["activation_beta"] or [])
    found: list[Activation] = []
    for name in call["activations"] or defaults:
        if name.lower() in _WITHOUT:
            found.append(_WITHOUT[name.lower()])
            continue
        function, (alpha, beta) = _WITH_NUMBERS[name.lower()]
        alpha = next(alphas, alpha)
        beta = None if beta is None else next(betas, beta)
        found.append(_bound(function, alpha, beta))
    return found


def _bound(function: Callable[..., Array], alpha: float | None, beta: float | None) -> Activation:
    return lambda x: function(x, alpha, beta)
