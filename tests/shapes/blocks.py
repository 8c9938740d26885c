"""Blocks of forward: lines that take ``x``, of the sizes ``n`` and ``m``, and leave an ``x`` of the same rank.

Some forms the exporter keeps in symbols, others it bakes, narrows, freezes or stops at; which, no block says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.shapes.sizes import Draw, condition, size, small

CHANNELS = 4


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block stands.

    Attributes:
        number: Of the block, for the names of what it stores.
        rank: Of x: 3 for sequences [batch, channels, length], 4 for images.
        axis: The one that the block works on, counted from the end.
    """

    number: int
    rank: int
    axis: int

    def cut(self, text: str) -> str:
        """An index of x along the axis."""
        return f"x[..., {text}]" if self.axis == -1 else f"x[..., {text}, :]"

    def pads(self, before: object, after: object) -> str:
        """The argument of F.pad that pads along the axis."""
        return f"({before}, {after})" if self.axis == -1 else f"(0, 0, {before}, {after})"

    def both(self, along: object, other: object) -> str:
        """A pair of sizes for an operator of images; one number for sequences."""
        if self.rank == 3:
            return str(along)
        return f"({other}, {along})" if self.axis == -1 else f"({along}, {other})"

    @property
    def other(self) -> str:
        """The size of the other axis of an image."""
        return f"x.shape[{-3 - self.axis}]"

    @property
    def dims(self) -> int:
        """How many axes an operator moves over: 1 or 2."""
        return self.rank - 2

    def row(self, values: str) -> str:
        """A vector of n values, to be combined with x along the axis."""
        return values if self.axis == -1 else f"({values})[:, None]"


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of forward, and of __init__."""

    lines: tuple[str, ...]
    stored: tuple[str, ...] = ()


def _block(*lines: str, stored: tuple[str, ...] = ()) -> Block:
    return Block(lines, stored)


Maker = Callable[[Draw, Place], Block]


def _slice(draw: Draw, at: Place) -> Block:
    form = ("x.narrow({a}, 0, {e})", at.cut(":{e}"), at.cut("-({e}):"), at.cut("{e}:"), at.cut("::{k}"), at.cut("{k}:"))
    return _chosen(draw, at, *(f"x = {one}" for one in form))


def _scale(draw: Draw, at: Place) -> Block:
    return _chosen(
        draw, at,
        "x = x * ({e})", "x = x + ({e})", "x = x / (1 + abs({e}))", "x = x * n ** -0.5", "x = x * math.sqrt(n)",
        "x = x / n", "x = x * (({e}) / {c})", "x = x * torch.tensor(float({e}))", "x = x * math.log(n + 1)",
        "x = x + torch.full((1,), ({e}) * 0.1)", "x = x.clamp(-n / {c}, n / {c})",
        "x = x * torch.tensor(x.shape[{a}] / {c})",
    )  # fmt: skip


def _pad(draw: Draw, at: Place) -> Block:
    return _chosen(
        draw, at,
        f"x = F.pad(x, {at.pads(0, '-n % {k}')})",
        f"x = F.pad(x, {at.pads(0, '({k} - n % {k}) % {k}')})",
        f"x = F.pad(x, {at.pads(0, '{k} - n % {k}')}, value=0.5)",
        f"x = F.pad(x, {at.pads(0, 'max(0, {c} - n)')})",
        f"x = F.pad(x, {at.pads(1, '{e}')})",
        f"x = F.pad(x, {at.pads('(-n % {k}) // 2', '(-n % {k} + 1) // 2')})",
        "if n % {k}:\n    x = F.pad(x, " + at.pads(0, "{k} - n % {k}") + ")",
        f"x = F.pad(x, {at.pads(1, 1)}, mode='replicate')",
        f"x = F.pad(x, {at.pads(1, 1)}, mode='reflect')",
        f"x = F.pad(x, {at.pads(1, 2)}, mode='circular')",
    )  # fmt: skip


def _resize(draw: Draw, at: Place) -> Block:
    smooth = "linear" if at.rank == 3 else "bilinear"
    both = at.both("{e}", at.other)
    return _chosen(
        draw, at,
        f"x = F.interpolate(x, size={both}, mode='nearest')",
        f"x = F.interpolate(x, size={both}, mode='{smooth}', align_corners=False)",
        f"x = F.interpolate(x, size={both}, mode='{smooth}', align_corners=True)",
        f"x = F.interpolate(x, size={both}, mode='area')",
        "x = F.interpolate(x, scale_factor=2.0, mode='nearest')",
        f"x = F.interpolate(x, scale_factor=1.5, mode='{smooth}', align_corners=False)",
        "x = F.interpolate(x, scale_factor=0.5, mode='nearest')",
        f"x = F.interpolate(F.avg_pool{at.dims}d(x, 2, ceil_mode=True), size=x.shape[2:], mode='nearest')",
    )  # fmt: skip


def _pool(draw: Draw, at: Place) -> Block:
    d, other = at.dims, "None"
    return _chosen(
        draw, at,
        f"x = F.adaptive_avg_pool{d}d(x, {at.both('{k}', other)})",
        f"x = F.adaptive_avg_pool{d}d(x, {at.both(1, other)})",
        f"x = F.adaptive_avg_pool{d}d(x, {at.both('{e}', other)})",
        f"x = F.adaptive_max_pool{d}d(x, {at.both('{k}', at.other)})",
        f"x = F.max_pool{d}d(x, 2, ceil_mode=True)",
        f"x = F.avg_pool{d}d(x, {at.both('{k}', 1)})",
        f"x = F.avg_pool{d}d(x, {at.both(3, 1)}, stride={at.both(2, 1)}, padding={at.both(1, 0)}, ceil_mode=True)",
        f"x = F.avg_pool{d}d(x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)",
        f"x = F.avg_pool{d}d(x, {at.both('{e}', 1)})",
        f"x = F.avg_pool{d}d(x, {at.both('n', 1)})",
        f"x = F.lp_pool{d}d(x.abs() + 0.1, 2.0, 2)",
    )  # fmt: skip


def _convolve(draw: Draw, at: Place) -> Block:
    d, c = at.dims, CHANNELS
    form = (
        f"nn.Conv{d}d({c}, {c}, 3, stride=2, padding=1)",
        f"nn.Conv{d}d({c}, {c}, 3, padding='same')",
        f"nn.Conv{d}d({c}, {c}, 2, dilation=2)",
        f"nn.ConvTranspose{d}d({c}, {c}, 2, stride=2)",
        f"nn.BatchNorm{d}d({c})",
        f"nn.GroupNorm(2, {c})",
        f"nn.InstanceNorm{d}d({c})",
    )
    stored = f"self.layer{at.number} = {form[int(draw.integers(len(form)))]}"
    return _block(f"x = self.layer{at.number}(x)", stored=(stored,))


def _fold(draw: Draw, at: Place) -> Block:
    """Views with a computed size, mostly after a cut or a pad to a multiple."""
    k = small(draw, 2, 4)
    kept = f"x = {at.cut(f': n // {k} * {k}')}"
    padded = f"x = F.pad(x, {at.pads(0, f'-n % {k}')})"
    first = kept if draw.random() < 0.5 else padded
    a = at.axis
    lead, tail = ("x.shape[:-1]", "()") if a == -1 else ("x.shape[:-2]", "x.shape[-1:]")
    if draw.random() < 0.4 and a == -1 and at.rank == 3:
        form = (
            f"x = x.view(x.shape[0], {CHANNELS}, -1, {k}).mean(-1)",
            f"x = x.reshape(x.shape[0], -1, x.shape[-1] // {k}).repeat(1, 1, 1)[:, :{CHANNELS}]",
            f"x = x.reshape(x.shape[0], {CHANNELS}, {k}, x.shape[-1] // {k}).amax(2)",
            f"x = x.reshape(-1, {CHANNELS}, x.shape[-1])",
            f"x = x.reshape(x.shape[0], {CHANNELS} * x.shape[-1]).view(x.shape[0], {CHANNELS}, -1)",
        )
        return _block(first, form[int(draw.integers(len(form)))])
    part = "mean" if draw.random() < 0.5 else "amax"
    where = a - 1 if draw.random() < 0.5 else a
    return _block(first, f"x = x.reshape(*{lead}, x.shape[{a}] // {k}, {k}, *{tail}).{part}({where})")


def _windows(draw: Draw, at: Place) -> Block:
    return _chosen(
        draw, at,
        "x = x.unfold({a}, {k}, {j}).mean(-1)",
        "x = x.unfold({a}, {k}, 1).amax(-1)",
        "x = x.unfold({a}, {e}, 1).mean(-1)",
    )  # fmt: skip


def _branch(draw: Draw, at: Place) -> Block:
    forms = ("x = x * 2.0", "x = x.relu()", f"x = x.flip({at.axis})", f"x = {at.cut(':(n + 1) // 2')}", "x = x - 1.0")
    one, other = (forms[int(draw.integers(len(forms)))] for _ in range(2))
    lines = [f"if {condition(draw)}:", f"    {one}"]
    if draw.random() < 0.6:
        lines += ["else:", f"    {other}"]
    return _block(*lines)


def _loop(draw: Draw, at: Place) -> Block:
    return _chosen(
        draw, at,
        f"for step in range({{e}}):\n    x = x + 0.1 * step * {at.cut(':1')}",
        f"for step in range({{k}}):\n    x = x + {at.cut('step % n : step % n + 1')}",
        "while x.shape[{a}] > {c}:\n    x = " + at.cut("::2"),
        "x = torch.stack([row * (1 + 0.1 * at) for at, row in enumerate(x.unbind({a}))], {a})",
        "x = torch.cat([part.mean({a}, keepdim=True) for part in x.split({k}, {a})], {a})",
    )  # fmt: skip


def _table(draw: Draw, at: Place) -> Block:
    rows, name = (64 if draw.random() < 0.75 else small(draw, 12, 26)), f"self.table{at.number}"
    smooth = "'linear'"
    form = (
        f"x = x + {at.row(f'{name}[:n]')}",
        f"x = x + {at.row(f'{name}[torch.arange(n).clamp(max={rows - 1})]')}",
        f"x = x + {at.row(f'{name}[torch.arange(n)]')}",
        f"x = x * {at.row(f'{name}[{size(draw, 1)}]')}",
        f"x = x + {at.row(f'F.interpolate({name}[None, None], size=n, mode={smooth})[0, 0]')}",
        f"x = x + {at.row(f'F.interpolate({name}[None, None, :7], size=n)[0, 0]')}",
        f"x = x + {at.row(f'{name}.narrow(0, {rows} - n, n)')}",
    )
    return _block(form[int(draw.integers(len(form)))], stored=(f"{name} = nn.Parameter(torch.randn({rows}))",))


def _positions(draw: Draw, at: Place) -> Block:
    form = (
        "torch.arange(n) / n", "torch.linspace(-1.0, 1.0, n)", "torch.arange(n, dtype=x.dtype).sin()",
        "torch.arange(0, n) % {k}", "torch.arange(n - 1, -1, -1) * 0.1", "torch.arange(n) // {k}",
        "torch.ones(n) * n", "torch.arange(0, 2 * n, 2) / ({e} + {c})", "(torch.arange(n) < ({e})).float()",
        "torch.ones_like(x[0, 0]).reshape(-1)[:n].cumsum(0)", "torch.hann_window(n)",
        "torch.tensor([float(at) for at in range(n)])", "torch.eye(n).sum(0).cumsum(0)",
    )  # fmt: skip
    return _chosen(draw, at, *(f"x = x + {at.row(one)}" for one in form), *(f"x = x * {at.row(one)}" for one in form))


def _join(draw: Draw, at: Place) -> Block:
    return _chosen(
        draw, at,
        f"x = torch.cat([x, {at.cut(':({e})')}], {{a}})",
        f"x = torch.cat([{at.cut('{k}:')}, {at.cut(':{k}')}], {{a}})",
        "x = torch.cat([x, x.mean({a}, keepdim=True)], {a})",
        "x = x.repeat_interleave({k}, {a})",
        "x = torch.cat([x] * {k}, {a})",
        "x = torch.cat([x] * ({e}), {a})",
        "x = x.roll({e}, {a})",
        "x = x.roll({k}, {a})",
        "x = x.flip({a})",
        "x = x.chunk(2, {a})[0]",
        "x = x.tensor_split(2, {a})[1]",
        "x = x.split({e}, {a})[0]",
        "x = x.split({k}, {a})[0]",
        "x = x + x.mean({a}, keepdim=True).expand(*x.shape[:-1], n)" if at.axis == -1 else "x = x.flip({a})",
    )  # fmt: skip


def _mix(draw: Draw, at: Place) -> Block:
    """Operators whose sizes follow by themselves."""
    return _chosen(
        draw, at,
        "x = x.softmax({a})", "x = x - x.mean({a}, keepdim=True)", "x = x.cumsum({a}) / n", "x = x.sort({a}).values",
        "x = x.topk({k}, {a}).values", "x = x.topk({e}, {a}).values", "x = x / (x.norm(dim={a}, keepdim=True) + 1.0)",
        f"x = {at.cut('1:')} - {at.cut(':-1')}", "x = x.index_select({a}, torch.tensor([0, 2]))",
        f"x = {at.cut('[0, -1]')}", f"x = {at.cut('n // 2 : n // 2 + 1')} + x", "x = F.gelu(x)",
        "x = x.std({a}, keepdim=True) + x", "x = x.sum({a}, keepdim=True) + x", "x = x - x.amax({a}, keepdim=True)",
        "x = x * x.shape.numel() / 100", "x = x.tanh()",
    )  # fmt: skip


def _attend(draw: Draw, at: Place) -> Block:
    if at.rank != 3:
        return _mix(draw, at)
    form = (
        "x = (x.transpose(1, 2) @ x / 2.0).tril().softmax(-1).matmul(x.transpose(1, 2)).transpose(1, 2)",
        "x = F.scaled_dot_product_attention(x.mT, x.mT, x.mT, is_causal=True).mT",
        "x = x @ torch.ones(n, n).tril() / n",
        "x = x @ torch.cos(torch.arange(n)[:, None] * torch.arange(n) * math.pi / n)",
        f"x = x @ self.mask{at.number}[:n, :n] / n",
        "x = F.layer_norm(x, x.shape[-1:])",
        f"x = F.scaled_dot_product_attention(x.mT, x.mT, x.mT, attn_mask=self.mask{at.number}[:n, :n] > 0).mT",
    )
    text = form[int(draw.integers(len(form)))]
    stored = f"self.register_buffer('mask{at.number}', torch.ones(40, 40).tril())"
    return _block(text, stored=(stored,) if "self.mask" in text else ())


def _kept(draw: Draw, at: Place) -> Block:
    """Tables that are made once and kept, as rotary embeddings are."""
    name = f"self.kept{at.number}"
    if draw.random() < 0.5:
        lines = (f"if {name} is None or {name}.shape[0] != n:", f"    {name} = torch.arange(n) * 0.1")
        return _block(*lines, f"x = x + {at.row(name)}", stored=(f"{name} = None",))
    table = f"{{size: 0.1 * size for size in range({small(draw, 4, 10)}, {small(draw, 12, 20)})}}"
    return _block(f"x = x * {name}.get(n, 1.0)", stored=(f"{name} = {table}",))


BLOCKS: tuple[tuple[Maker, float], ...] = (
    (_slice, 1.0), (_scale, 1.0), (_pad, 1.2), (_resize, 1.0), (_pool, 1.2), (_convolve, 0.8), (_fold, 1.5),
    (_windows, 0.4), (_branch, 0.4), (_loop, 0.4), (_table, 0.8), (_positions, 1.0), (_join, 1.2), (_mix, 1.5),
    (_attend, 0.8), (_kept, 0.2),
)  # fmt: skip
"""With how often each is drawn."""


def draw_block(draw: Draw, at: Place) -> Block:
    """One of them."""
    makers, weights = zip(*BLOCKS, strict=True)
    total = sum(weights)
    maker: Maker = makers[int(draw.choice(len(makers), p=[one / total for one in weights]))]
    return maker(draw, at)


def _chosen(draw: Draw, at: Place, *forms: str) -> Block:
    form = forms[int(draw.integers(len(forms)))]
    text = form.format(a=at.axis, e=size(draw), k=small(draw), j=small(draw, 1, 3), c=small(draw, 4, 20))
    return _block(*text.split("\n"))
