"""A module with a declaration, as the export knows it, without an export."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from onnx_ci.export import arguments
from onnx_ci.export.options import Options
from onnx_ci.export.places import Places
from onnx_ci.export.subject import Subject
from onnx_ci.export.types import Declared, DeclaredInput
from onnx_ci.records.model import DimSpec, ModelSpec

Axes = list[str | int]


class Does(nn.Module):
    """A module of a function of one input."""

    def __init__(self, function: Callable[[torch.Tensor], object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def subject_of(
    module: nn.Module, axes: Axes, dims: dict[str, tuple[int, int]], example: dict[str, int], **spec
) -> Subject:
    """The subject of a module of one input."""
    (name,) = inspect.signature(module.forward).parameters
    shape = [axis if isinstance(axis, int) else example[axis] for axis in axes]
    values = torch.linspace(-1.0, 1.0, 7)
    inputs = {name: values.repeat(1 + math.prod(shape) // 7)[: math.prod(shape)].reshape(shape)}
    call = arguments.bind(module, inputs)
    return Subject(
        spec=ModelSpec(name="model", entrypoint="model.py:build", **spec),
        module=module.eval(),
        example=inputs,
        call=call,
        leaves=arguments.leaves(module, inputs),
        eager=arguments.call(module, call),
        declared=Declared(
            [DeclaredInput(name, axes, "float32")],
            {dim: DimSpec(min=least, max=most, example=example[dim]) for dim, (least, most) in dims.items()},
        ),
        options=Options("dynamo", None, None),
        short=False,
        places=Places.of(Path.cwd()),
    )
