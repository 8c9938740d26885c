"""The oracle computes what the module means in float64, whatever it hard-codes about precision."""

from __future__ import annotations

import copy
import math
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from onnx_ci.export import oracle
from onnx_ci.export.types import Call

X = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(3))


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(7)


def run(module, *args, **kwargs):
    return oracle.Oracle(module).run(Call(args, kwargs)).values


def relative(actual, expected):
    assert actual.dtype == expected.dtype == torch.float64
    assert actual.shape == expected.shape
    return ((actual - expected).norm() / expected.norm()).item()


class Floats(nn.Module):
    """Computes its norm in float32, as Llama does, and goes on in a Linear."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(8))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.float().pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.head(self.weight * wide.type_as(x))

    def in_double(self, x):
        x, weight = x.double(), self.weight.double()
        y = weight * x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6)
        return y @ self.head.weight.double().T + self.head.bias.double()


class Positions(nn.Module):
    """Sines and cosines of positions that forward makes itself."""

    def forward(self, x):
        at = torch.arange(x.shape[1], device=x.device).float()[:, None]
        step = torch.exp(torch.arange(0, 8, 2, dtype=torch.float32) * (-math.log(10000.0) / 8))
        table = torch.zeros(x.shape[1], 8)
        table[:, 0::2] = torch.sin(at * step)
        table[:, 1::2] = torch.cos(at * step)
        return x + table

    def in_double(self, x):
        at = np.arange(x.shape[1])[:, None] * np.exp(np.arange(0, 8, 2) * (-math.log(10000.0) / 8))
        table = np.stack([np.sin(at), np.cos(at)], axis=-1).reshape(x.shape[1], 8)
        return x.double() + torch.from_numpy(table)


class Rotary(nn.Module):
    """Rotary embedding, with its frequencies in a plain attribute and its product under .float()."""

    def __init__(self):
        super().__init__()
        self.frequencies = 1.0 / (10000.0 ** (torch.arange(0, 4).float() / 4))

    def forward(self, x):
        angle = torch.outer(torch.arange(x.shape[1]).type_as(self.frequencies), self.frequencies)
        turn = torch.polar(torch.ones_like(angle), angle)
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], 4, 2))
        return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)

    def in_double(self, x):
        frequencies = self.frequencies.double()
        angle = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * frequencies
        even, odd = x.double()[..., 0::2], x.double()[..., 1::2]
        turned = (even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos())
        return torch.stack(turned, -1).flatten(-2)


class Epsilon(nn.Module):
    """Adds the epsilon of its input's dtype: float32's, in the oracle too."""

    def forward(self, x):
        assert x.dtype == torch.float32
        return x / (x.abs().amax(-1, keepdim=True) * 1e-8 + torch.finfo(x.dtype).eps)

    def in_double(self, x):
        x = x.double()
        return x / (x.abs().amax(-1, keepdim=True) * 1e-8 + 2.0**-23)


class RootMeanSquare(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(8)

    def forward(self, x):
        return self.norm(x * 1e-4) + F.rms_norm(x, (8,)) + torch.rms_norm(x, (8,), None, None)

    def in_double(self, x):
        def norm(x):
            return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 2.0**-23)

        return norm(x.double() * 1e-4) + 2 * norm(x.double())


@pytest.mark.parametrize("kind", [Floats, Positions, Rotary, Epsilon, RootMeanSquare])
def test_what_forward_hard_codes_is_lifted(kind):
    module = kind()
    (value,) = run(module, X)
    assert relative(value, module.in_double(X)) < 1e-14


def test_lifting_is_what_makes_the_difference():
    module = Positions()
    bare = copy.deepcopy(module).double()(X.double())
    assert relative(bare, module.in_double(X)) > 1e-9


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Conv1d(5, 4, 3), nn.BatchNorm1d(4), nn.GELU()).eval(),
        nn.LSTM(8, 3, num_layers=2, bidirectional=True, batch_first=True),
        nn.GRU(8, 3, batch_first=True),
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(),
        nn.utils.parametrizations.weight_norm(nn.Linear(8, 3)),
    ],
    ids=lambda module: type(module).__name__,
)
def test_plain_modules_are_what_double_makes_of_them(module):
    values = run(module, X)
    with torch.no_grad():
        expected = copy.deepcopy(module).double()(X.double())
    first = expected[0] if isinstance(expected, tuple) else expected
    assert relative(values[0], first) < 1e-14


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_modules_are_lifted_from_their_own_values(dtype):
    module = Floats().to(dtype)
    (value,) = run(module, X.to(dtype))
    assert relative(value, module.in_double(X.to(dtype))) < 1e-14


@pytest.mark.parametrize(("dtype", "eps"), [(torch.float16, 2.0**-10), (torch.bfloat16, 2.0**-7)])
def test_a_norms_epsilon_is_that_of_the_modules_dtype(dtype, eps):
    (value,) = run(nn.RMSNorm(8).to(dtype), X.to(dtype))
    wide = X.to(dtype).double()
    assert relative(value, wide / torch.sqrt((wide * wide).mean(-1, keepdim=True) + eps)) < 1e-14


def test_a_float64_module_keeps_its_own_epsilon():
    (value,) = run(nn.RMSNorm(8).double(), X.double() * 1e-8)
    wide = X.double() * 1e-8
    assert relative(value, wide / torch.sqrt((wide * wide).mean(-1, keepdim=True) + 2.0**-52)) < 1e-14


def test_integers_masks_and_tied_weights_stay_what_they_are():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("order", torch.tensor([1, 0]))
            self.table = nn.Embedding(9, 8)
            self.head = nn.Linear(8, 9, bias=False)
            self.head.weight = self.table.weight

        def forward(self, ids, mask):
            scores = self.head(self.table(ids)).masked_fill(~mask[..., None], torch.finfo(torch.float32).min)
            return scores, scores.argmax(-1), self.order

    module, ids, mask = Net(), torch.tensor([[1, 8]]), torch.tensor([[True, False]])
    scores, best, order = run(module, ids, mask)
    weight = module.table.weight.double()
    assert relative(scores[0, :1], weight[1:2] @ weight.T) < 1e-14
    assert scores[0, 1, 0].item() == torch.finfo(torch.float32).min
    assert (best.dtype, order.dtype) == (torch.int64, torch.int64)


def test_a_branch_that_torch_cond_takes_is_lifted():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 8)

        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: self.fc(x), lambda x: -self.fc(x), (x,))

    module = Net()
    (value,) = run(module, X.abs())
    assert relative(value, F.linear(X.abs().double(), module.fc.weight.double(), module.fc.bias.double())) < 1e-14


def test_every_call_starts_from_the_same_state_and_leaves_the_module_alone():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x):
            self.seen += 1
            return x * self.seen

    module = Counts()
    made = oracle.Oracle(module)
    first, second = (made.run(Call((X,), {})).values[0] for _ in range(2))
    assert torch.equal(first, second)
    assert (module.seen.item(), module.seen.dtype) == (0, torch.float32)


@pytest.mark.parametrize("raises", [False, True])
def test_global_state_is_left_as_it_was(raises):
    class Net(nn.Module):
        def forward(self, x):
            if raises:
                raise ValueError("no")
            return x + torch.rand(1)

    before = torch.get_rng_state()
    if raises:
        with pytest.raises(oracle.Unoracled, match="ValueError: no"):
            run(Net(), X)
    else:
        run(Net(), X)
    assert torch.get_default_dtype() == torch.float32
    assert torch.finfo(torch.float32).eps == 2.0**-23
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.ones(1).dtype == torch.float32


def test_what_leaves_float64_on_the_way_is_unoracled():
    class Leaves(nn.Module):
        def forward(self, x):
            return torch.from_numpy(x.numpy().astype(np.float32))

    with pytest.raises(oracle.Unoracled, match=r"output 0 leaves float64"):
        run(Leaves(), X)


def test_a_module_that_cannot_be_copied_is_unoracled():
    class Alone(nn.Module):
        def __deepcopy__(self, memo):
            raise TypeError("only one")

    with pytest.raises(oracle.Unoracled, match="no copy in float64: TypeError: only one"):
        oracle.Oracle(Alone())


def swish(x):
    return x * torch.sigmoid(x)


def swish_in_float(x):
    return x.float() * torch.sigmoid(x.float())


def script(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch.jit.script is; modules in use still hold its work
        return torch.jit.script(function)


class Scripted(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.activation, self.fc = activation, nn.Linear(8, 3)

    def forward(self, x):
        return self.fc(self.activation(x))


def test_scripted_functions_are_followed():
    module = Scripted(script(swish))
    wide = X.double() * torch.sigmoid(X.double())
    (value,) = run(module, X)
    assert relative(value, wide @ module.fc.weight.double().T + module.fc.bias.double()) < 1e-14


def test_scripted_code_that_says_float_is_unoracled_since_nothing_reaches_into_it():
    with pytest.raises(oracle.Unoracled, match=r"aten\._to_copy makes a lower precision"):
        run(Scripted(script(swish_in_float)), X)
