"""Seconds from a failing output to the node that is at fault: on graphs of 50 nodes, one of them of ResNet-18's size.

``python benchmarks/divergence.py``: the weights of one convolution in each file are made larger by 1 %, and what
`diverge` takes to name it is measured, beside one run of the file. Needs torch; takes about a minute.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import nn

from onnx_ci.artifact import layout
from onnx_ci.divergence.session import CpuSession
from onnx_ci.export import arguments, arrays, graph, save
from onnx_ci.export.diverge import diverge
from onnx_ci.export.inner import Replay
from onnx_ci.export.options import Options
from onnx_ci.export.places import Places
from onnx_ci.export.subject import Subject
from onnx_ci.export.types import Declared, DeclaredInput
from onnx_ci.records.model import DimSpec, ModelSpec

ROUNDS = 5


class Block(nn.Module):
    """Two convolutions with norms and a way around them."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside)
        self.conv2, self.norm2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside)
        self.down = nn.Conv2d(inside, outside, 1, stride) if stride > 1 or inside != outside else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One block."""
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(y)) + self.down(x))


class Net(nn.Module):
    """A residual network of these widths, two blocks each."""

    def __init__(self, widths: list[int]) -> None:
        super().__init__()
        blocks, inside = list[nn.Module](), widths[0]
        for at, width in enumerate(widths):
            blocks += [Block(inside, width, 1 if at == 0 else 2), Block(width, width, 1)]
            inside = width
        self.stem = nn.Conv2d(3, widths[0], 7, 2, 3)
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(inside, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Scores of ten classes."""
        y = nn.functional.max_pool2d(torch.relu(self.stem(image)), 3, 2, 1)
        return self.head(self.blocks(y).mean((2, 3)))


def subject_of(module: nn.Module, size: int) -> Subject:
    """The module with two images."""
    torch.manual_seed(0)
    inputs = {"image": torch.rand(2, 3, size, size)}
    call = arguments.bind(module, inputs)
    return Subject(
        spec=ModelSpec(name="net", entrypoint="net.py:build"),
        module=module,
        example=inputs,
        call=call,
        leaves=arguments.leaves(module, inputs),
        eager=arguments.call(module, call),
        declared=Declared(
            [DeclaredInput("image", ["batch", 3, size, size], "float32")], {"batch": DimSpec(min=1, max=8)}
        ),
        options=Options("dynamo", None, None),
        short=False,
        places=Places.of(Path.cwd()),
    )


def change_one(file: Path) -> str:
    """Makes the weights of the middle convolution larger by 1 %; the name of its output."""
    model = onnx.load(str(file))
    convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
    middle = convolutions[len(convolutions) // 2]
    weight = next(item for item in model.graph.initializer if item.name == middle.input[1])
    array = onnx.numpy_helper.to_array(weight) * np.float32(1.01)
    weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))
    onnx.save(model, str(file))
    return middle.output[0]


def seconds(act: Callable[[], Any]) -> float:
    """Median of a few."""
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        act()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def measure(name: str, widths: list[int], size: int) -> None:
    """Prints a row."""
    subject = subject_of(Net(widths).eval(), size)
    built = graph.build(subject, lambda _: contextlib.nullcontext())
    if isinstance(built, list):
        raise RuntimeError(built[0].message)
    feeds = {key: arrays.to_value(leaf.value) for key, leaf in built.inputs.items()}
    (output,) = built.outputs
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / layout.MODEL
        save.save(built.model, Path(folder), single_file=True)
        wrong = change_one(file)
        count = len(onnx.load(str(file)).graph.node)

        def locate() -> None:
            found = diverge(Replay(subject, built, subject.example), file, feeds, [output])
            if found is None or found.gap.name != wrong or not found.is_cause:
                raise RuntimeError(f"{wrong} was changed, and {found.gap.name if found else 'nothing'} is named")

        taken, once = seconds(locate), seconds(lambda: CpuSession(file, optimized=False).run(feeds))
    print(f"{name:28} {count:4} nodes   {taken:6.2f} s to name the node   {once:6.3f} s to open and run the file once")


if __name__ == "__main__":
    measure("residual, 64 x 64", [16, 16, 32, 64], 64)
    measure("ResNet-18's size, 224 x 224", [64, 128, 256, 512], 224)
