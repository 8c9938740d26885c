"""Originals and what was made of them: healthy rewrites, and broken ones. Each pair is two functions of one name."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Do(nn.Module):
    """A module of one function, with the layers that it is given; built from a seed."""

    def __init__(self, function, seed=0, **layers):
        super().__init__()
        torch.manual_seed(seed)
        self.function = function
        for name, layer in layers.items():
            setattr(self, name, layer() if callable(layer) and not isinstance(layer, nn.Module) else layer)
        self.eval()

    def forward(self, x):
        return self.function(self, x)


def conv():
    return nn.Conv2d(2, 4, 3, padding=1)


def pooled(how):
    """The score of a pooled map, its grid made by `how` of height and width."""
    return Do(lambda self, x: F.adaptive_avg_pool2d(self.conv(x).relu(), how(*x.shape[2:])), conv=conv)


def sides(round_, short):
    def grid(height, width):
        if height <= width:
            return short, round_(width * short / height)
        return round_(height * short / width), short

    return grid


def half_up(number):
    return math.floor(number + 0.5)


def original_pool(short=2):
    return pooled(sides(round, short))


def static_pool(height, width, short=2, round_=round):
    grid = sides(round_, short)(height, width)
    return pooled(lambda *_: grid)


def truncating_pool(height, width, short=2):
    return static_pool(height, width, short, int)


def half_up_pool(height, width, short=2):
    return static_pool(height, width, short, half_up)


def swapped_pool(height, width, short=2):
    return static_pool(width, height, short)


def guarded_pool():
    """Three tenths of the width, rounded up but for what floating point leaves over."""
    return pooled(lambda height, width: (2, math.ceil(width * (0.1 * 3) - 1e-6)))


def unguarded_pool(height, width):
    grid = 2, math.ceil(width * (0.1 * 3))
    return pooled(lambda *_: grid)


def adaptive_pool():
    return Do(lambda self, x: F.adaptive_avg_pool2d(self.conv(x), (3, 3)), conv=conv)


def ordinary_pool():
    return Do(lambda self, x: F.avg_pool2d(self.conv(x), 4, 2), conv=conv)  # 8x8: 3x3 as well


def windows(size, bins):
    """The matrix that pools `size` values into `bins`, in float32 as buffers are."""
    rows = torch.zeros(bins, size)
    for at in range(bins):
        first, last = at * size // bins, -(-(at + 1) * size // bins)
        rows[at, first:last] = 1 / (last - first)
    return rows


class MatrixPool(nn.Module):
    def __init__(self, size, bins):
        super().__init__()
        torch.manual_seed(0)
        self.conv = conv()
        self.register_buffer("rows", windows(size, bins))

    def forward(self, x):
        return self.rows @ self.conv(x) @ self.rows.T


def matrix_pool():
    return MatrixPool(8, 3).eval()


def offset_resize():
    return Do(lambda self, x: F.interpolate(self.conv(x), size=(5, 5), mode="bilinear"), conv=conv)


def aligned_resize():
    return Do(lambda self, x: F.interpolate(self.conv(x), size=(5, 5), mode="bilinear", align_corners=True), conv=conv)


def drawn_lines(size, target):
    at = (torch.arange(target) + 0.5) * size / target - 0.5
    low = at.clamp(min=0).floor()
    share = at.clamp(min=0) - low
    rows = torch.zeros(target, size)
    rows[torch.arange(target), low.long()] += 1 - share
    rows[torch.arange(target), (low.long() + 1).clamp(max=size - 1)] += share
    return rows


def matrix_resize():
    rows = drawn_lines(8, 5)
    module = Do(lambda self, x: self.rows @ self.conv(x) @ self.rows.T, conv=conv)
    module.register_buffer("rows", rows)
    return module


def largest():
    return Do(lambda self, x: F.max_pool2d(x, 2) * self.scale, scale=lambda: nn.Parameter(torch.ones(1)))


def largest_of_views():
    def forward(self, x):
        b, c, h, w = x.shape
        return x.view(b, c, h // 2, 2, w // 2, 2).amax((3, 5)) * self.scale

    return Do(forward, scale=lambda: nn.Parameter(torch.ones(1)))


def ties():
    """Pixels of 256 levels, flat at the bottom: every second window has equal maxima."""
    x = torch.randint(0, 4, (1, 2, 8, 8), generator=torch.Generator().manual_seed(0)) / 255
    x[..., 4:, :] = 0
    return [("screenshot", {"x": x})]


def magnitude():
    return Do(lambda self, x: self.conv(x.abs()), conv=conv)


def magnitude_by_relu():
    return Do(lambda self, x: self.conv(x.relu() + (-x).relu()), conv=conv)


def zeros():
    return [("blank", {"x": torch.zeros(1, 2, 8, 8)})]


def linear():
    return nn.Linear(8, 8)


def attention():
    return Do(
        lambda self, x: F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x)), q=linear, k=linear, v=linear
    )


def attention_by_hand():
    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(-1, -2) / math.sqrt(x.shape[-1])
        return (scores - scores.logsumexp(-1, keepdim=True)).exp() @ self.v(x)

    return Do(forward, q=linear, k=linear, v=linear)


def normed():
    return Do(lambda self, x: self.norm(self.lin(x)), lin=linear, norm=lambda: nn.LayerNorm(8))


def normed_by_hand(eps=1e-5):
    def forward(self, x):
        h = self.lin(x)
        h = h - h.mean(-1, keepdim=True)
        return h / torch.sqrt((h * h).mean(-1, keepdim=True) + eps) * self.norm.weight + self.norm.bias

    return Do(forward, lin=linear, norm=lambda: nn.LayerNorm(8))


def normed_without_epsilon():
    return normed_by_hand(0.0)


def gelu():
    return Do(lambda self, x: F.gelu(self.lin(x)), lin=linear)


def gelu_by_tanh():
    return Do(lambda self, x: F.gelu(self.lin(x), approximate="tanh"), lin=linear)


def distances():
    return Do(lambda self, x: torch.cdist(self.lin(x), self.lin(x)), lin=linear)


def distances_by_products():
    def forward(self, x):
        h = self.lin(x)
        squares = (h * h).sum(-1)
        return (squares[..., :, None] + squares[..., None, :] - 2 * h @ h.transpose(-1, -2)).clamp(min=0).sqrt()

    return Do(forward, lin=linear)


def batch_normed():
    module = Do(lambda self, x: self.norm(self.conv(x)), conv=conv, norm=lambda: nn.BatchNorm2d(4))
    with torch.no_grad():
        module.norm.running_mean.uniform_(-1, 1)
        module.norm.running_var.uniform_(0.5, 2)
        module.norm.weight.uniform_(0.5, 2)
    return module


def folded():
    normal = batch_normed()
    fused = torch.nn.utils.fusion.fuse_conv_bn_eval(normal.conv, normal.norm)
    return Do(lambda self, x: self.conv(x), conv=fused)


def plain():
    return Do(lambda self, x: self.lin(x).relu(), lin=linear)


class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = plain()

    def forward(self, x):
        return self.model(x)


def wrapped():
    return Wrapped().eval()


def other_seed():
    return Do(lambda self, x: self.lin(x).relu(), seed=5, lin=linear)


def unseeded():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()


def unseeded_again():
    return nn.Sequential(nn.Linear(8, 8), nn.Threshold(0, 0)).eval()


def with_heads():
    return Do(lambda self, x: {"aux": self.aux(x), "logits": self.lin(x)}, lin=linear, aux=linear)


def without_heads():
    return Do(lambda self, x: self.lin(x), lin=linear, aux=linear)


def keyed_without_heads():
    return Do(lambda self, x: {"logits": self.lin(x)}, lin=linear, aux=linear)


def forbidding(value):
    def forward(self, x):
        allowed = torch.arange(8) < 5
        scores = self.lin(x).masked_fill(~allowed, value)
        return scores, scores.softmax(-1)

    return Do(forward, lin=linear)


def forbidden():
    return forbidding(-math.inf)


def forbidden_finitely():
    return forbidding(torch.finfo(torch.float32).min)


def angles(steps, dtype=None):
    at = torch.arange(steps, dtype=dtype)[:, None].float()
    return at * torch.exp(torch.arange(0, 8, dtype=torch.float32) * (-math.log(10000.0) / 8))


def positions():
    return Do(lambda self, x: self.lin(x) + angles(x.shape[1]).sin(), lin=linear)


def positions_beforehand():
    module = Do(lambda self, x: self.lin(x) + self.table[: x.shape[1]], lin=linear)
    module.register_buffer("table", angles(700).sin())
    return module


def turned(table):
    return Do(lambda self, x: self.lin(x) * table(self, x.shape[1]), lin=linear)


def rotated():
    return turned(lambda self, steps: (3000 + angles(steps)).sin())


def rotated_beforehand():
    module = turned(lambda self, steps: self.table[:steps])
    module.register_buffer("table", (3000 + angles(700)).sin())
    return module


def cached():
    module = turned(lambda self, steps: self.table[:steps].clamp(-1, 1))
    module.register_buffer("table", (3000 + angles(700)).sin() * 1.0)
    return module


def cached_otherwise():
    module = cached()
    module.register_buffer("table", torch.cat([module.table[:650], torch.full((50, 8), 9.0)]))
    return module


def many_steps():
    return [("long", {"x": torch.randn(1, 600, 8, generator=torch.Generator().manual_seed(0))})]


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lin = linear()

    @torch.no_grad()
    def forward(self, x):
        return self.lin(x).relu()


def frozen():
    return Frozen().eval()


def straight_through():
    def forward(self, x):
        h = self.lin(x)
        return h + (h.round() - h).detach()

    return Do(forward, lin=linear)


def rounded():
    return Do(lambda self, x: self.lin(x).round(), lin=linear)


def stopping():
    return Do(lambda self, x: self.lin(x) * self.lin(x).detach().sigmoid(), lin=linear)


def swish():
    return Do(lambda self, x: self.lin(x) * self.lin(x).sigmoid(), lin=linear)


def stopping_input():
    return Do(lambda self, x: x * self.lin(x).sigmoid() + x.detach() * self.lin.bias, lin=linear)


def whole_input():
    return Do(lambda self, x: x * self.lin(x).sigmoid() + x * self.lin.bias, lin=linear)


def weight_once():
    return Do(lambda self, x: self.lin(x) + F.linear(x, self.lin.weight.detach()), lin=linear)


def weight_twice():
    return Do(lambda self, x: self.lin(x) + F.linear(x, self.lin.weight), lin=linear)


def bias_as_constant():
    module = Do(lambda self, x: F.linear(x, self.lin.weight, self.fixed), lin=linear)
    module.register_buffer("fixed", module.lin.bias.detach().clone())
    return module


def biased():
    return Do(lambda self, x: self.lin(x), lin=linear)


class Tied(nn.Module):
    def __init__(self, tied):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
        self.second.weight = self.first.weight
        if not tied:
            self.second.weight = nn.Parameter(self.first.weight.detach().clone())

    def forward(self, x):
        return self.second(self.first(x).tanh())


def tied():
    return Tied(True).eval()


def untied():
    return Tied(False).eval()


class Tokens(nn.Module):
    def __init__(self, by_product):
        super().__init__()
        torch.manual_seed(0)
        self.table, self.by_product = nn.Embedding(20, 8), by_product

    def forward(self, x):
        if self.by_product:
            return (F.one_hot(x, 20).to(self.table.weight.dtype) @ self.table.weight).mean(1)
        return self.table(x).mean(1)


def tokens():
    return Tokens(False).eval()


def tokens_by_product():
    return Tokens(True).eval()


def some_tokens():
    return [("sentence", {"x": torch.tensor([[3, 1, 4, 1, 5]])})]


def best():
    return Do(lambda self, x: self.lin(x).relu().topk(6).indices, lin=linear)


def best_by_sorting():
    def forward(self, x):
        scores = self.lin(x).relu()
        return scores.sort(dim=-1, descending=True, stable=True).indices[..., :6]

    return Do(forward, lin=linear)


def best_of_negated():
    return Do(lambda self, x: (-self.lin(x)).relu().topk(6).indices, lin=linear)


class Outside(nn.Module):
    """Leaves PyTorch on its way, so that it has no float64 form."""

    def __init__(self, factor):
        super().__init__()
        torch.manual_seed(0)
        self.lin, self.factor = linear(), factor

    def forward(self, x):
        h = self.lin(x).detach().numpy().astype(np.float32)
        return torch.from_numpy(h * np.float32(self.factor))


def outside():
    return Outside(2.0).eval()


def doubled():
    return Do(lambda self, x: (self.lin(x) + self.lin(x)).float(), lin=linear)


def trebled():
    return Do(lambda self, x: self.lin(x) * 3, lin=linear)


def standardized():
    return Do(lambda self, x: self.conv((x - x.mean()) / (x.std() + 1e-12)), conv=conv)


def standardized_without_epsilon():
    return Do(lambda self, x: self.conv((x - x.mean()) / x.std()), conv=conv)


def any_length():
    return Do(lambda self, x: self.lin(x).sum(1), lin=linear)


def short_lengths():
    def forward(self, x):
        if x.shape[1] > 6:
            raise ValueError("too long")
        return self.lin(x).sum(1)

    return Do(forward, lin=linear)


def raising():
    raise RuntimeError("the checkpoint is gone")


class OtherNames(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lin = linear()

    def forward(self, features):
        return self.lin(features).relu()


def other_names():
    return OtherNames().eval()


class TwoInputs(OtherNames):
    def forward(self, features, lengths):
        return self.lin(features).relu() * lengths


def two_inputs():
    return TwoInputs().eval()
