"""Random modules as source: blocks in a row, with the sizes that are declared for them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.shapes.blocks import CHANNELS, Block, Place, draw_block
from tests.shapes.sizes import Draw, small

_MODEL = '''"""Module {name}."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{stored}

    def forward(self, x):
{lines}
        return x


def build():
    torch.manual_seed({seed})
    return Model().eval()
'''


@dataclass(frozen=True, slots=True)
class Dim:
    """A declared dim."""

    least: int
    most: int
    example: int
    step: int = 1

    def sizes(self) -> list[int]:
        """All that are declared."""
        return [size for size in range(self.least, self.most + 1) if size % self.step == 0]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A module and what is declared of it.

    Attributes:
        name: The seed and the number, which give it again.
        model: The text of model.py.
        shape: Of the one input, x.
    """

    name: str
    model: str
    shape: tuple[int | str, ...]
    dims: dict[str, Dim]

    @property
    def config(self) -> str:
        """The text of onnx-ci.toml."""
        shape = ", ".join(f'"{one}"' if isinstance(one, str) else str(one) for one in self.shape)
        lines = ["[models.model]", 'entrypoint = "model.py:build"']
        lines += [f'inputs.x = {{ dtype = "float32", shape = [{shape}] }}']
        for name, dim in self.dims.items():
            given = f"min = {dim.least}, max = {dim.most}, example = {dim.example}, multiple_of = {dim.step}"
            lines.append(f"dims.{name} = {{ {given} }}")
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> None:
        """Makes a project of it."""
        folder.mkdir(parents=True)
        (folder / "model.py").write_text(self.model, encoding="utf-8")
        (folder / "onnx-ci.toml").write_text(self.config, encoding="utf-8")


def drawn(seed: int, number: int) -> Drawn:
    """Module `number` of a seed; the same each time."""
    draw = np.random.default_rng([seed, number])
    name = f"{seed}-{number}"
    shape, moved = _shape(draw)
    names = [one for one in shape if isinstance(one, str)]
    dims = {one: _dim(draw, one, alone=len(names) == 1) for one in names}
    count = small(draw, 1, 4)
    blocks = [_placed(draw, at, len(shape), moved) for at in range(count)]
    stored = [line for block in blocks for line in block.stored] or ["pass"]
    lines = [line for block in blocks for line in block.lines]
    text = _MODEL.format(name=name, stored=_indented(stored), lines=_indented(lines), seed=number)
    return Drawn(name, text, shape, dims)


def _shape(draw: Draw) -> tuple[tuple[int | str, ...], list[int]]:
    """A shape, and the axes that blocks work on."""
    kind = draw.random()
    if kind < 0.4:
        return (1 if draw.random() < 0.5 else 2, CHANNELS, "length"), [-1]
    if kind < 0.6:
        return ("batch", CHANNELS, "length"), [-1]
    if kind < 0.75:
        return (1, CHANNELS, small(draw, 8, 12), "width"), [-1]
    if kind < 0.85:
        return (1, CHANNELS, "height", small(draw, 8, 12)), [-2]
    return (1, CHANNELS, "height", "width"), [-1, -2]


def _dim(draw: Draw, name: str, *, alone: bool) -> Dim:
    if name == "batch":
        return Dim(1, small(draw, 3, 5), small(draw, 2, 3))
    step = int(draw.choice([1, 2, 4], p=[0.75, 0.15, 0.1]))
    least = small(draw, 2, 8)
    most = least + (small(draw, 40, 80) if alone and draw.random() < 0.2 else small(draw, 8, 16))
    sizes = Dim(least, most, least, step).sizes()
    return Dim(sizes[0], sizes[-1], int(draw.choice(sizes)), step)


def _placed(draw: Draw, number: int, rank: int, moved: list[int]) -> Block:
    axis = int(draw.choice(moved))
    block = draw_block(draw, Place(number, rank, axis))
    other = 0 if rank == 3 else -3 - axis
    sizes = [f"{name} = x.shape[{at}]" for name, at in (("n", axis), ("m", other)) if _names(name, block.lines)]
    return Block((*sizes, *block.lines), block.stored)


def _names(name: str, lines: tuple[str, ...]) -> bool:
    return any(re.search(rf"\b{name}\b", line) for line in lines)


def _indented(lines: list[str]) -> str:
    return "\n".join(f"        {line}" for line in lines)
