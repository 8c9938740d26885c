"""The register of own kernels, what a kernel is called with, and what is raised where an operator has no path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx

from onnx_ci.twin.values import Value

Kernel = Callable[..., Any]
"""Called as ``kernel(call, *inputs)`` (None where an optional input is absent); gives a value, or a tuple of them."""

KERNELS: dict[str, Kernel] = {}


class Unoracled(Exception):
    """A file has no twin, or none at these inputs.

    Attributes:
        operator: The one that has no path in float64, with its domain where that is not ONNX's own.
        reason: Why, where there is more to say.
    """

    def __init__(self, operator: str, reason: str = "") -> None:
        super().__init__(f"unoracled: {operator}{': ' if reason else ''}{reason}")
        self.operator, self.reason = operator, reason


class Elsewhere(Exception):
    """A kernel hands these inputs on to the next path: ONNX Runtime, then onnx's reference."""


@dataclass(frozen=True, slots=True)
class Call:
    """One node at one run.

    Attributes:
        node: As in the file, references to a function's attributes resolved.
        version: The opset version of its domain.
        attributes: Its own, and the schema's defaults.
        run: Runs the graph of an attribute on inputs by position, and gives its outputs.
    """

    node: onnx.NodeProto
    version: int
    attributes: dict[str, Any]
    run: Callable[[str, Sequence[Value]], list[Value]]

    def __getitem__(self, name: str) -> Any:
        return self.attributes.get(name)

    def wants(self, index: int) -> bool:
        """Whether an output is asked for."""
        return index < len(self.node.output) and bool(self.node.output[index])


def kernel(*ops: str) -> Callable[[Kernel], Kernel]:
    """Registers a kernel for operators of ONNX's own domain."""

    def register(function: Kernel) -> Kernel:
        for op in ops:
            KERNELS[op] = function
        return function

    return register
