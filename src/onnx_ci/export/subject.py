"""What is exported, and the graph that came of it: the two records that the later steps work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx_ir as ir
import torch

from onnx_ci.export.capture import Captured
from onnx_ci.export.guards import Restriction
from onnx_ci.export.lost import Lost
from onnx_ci.export.options import Options
from onnx_ci.export.places import Places
from onnx_ci.export.shapes import Reading
from onnx_ci.export.types import Call, Declared, Leaf, NamedInputs, Outputs
from onnx_ci.records.model import ModelSpec
from onnx_ci.records.result import Finding
from onnx_ci.records.source_map import SourceMap


@dataclass(frozen=True, slots=True)
class Subject:
    """What is exported, and on which example.

    Attributes:
        leaves: Of the example, in the exporter's order.
        eager: What the module gave for it.
        weights: Digest of the module's state as it was loaded; "" where no second export will ask.
    """

    spec: ModelSpec
    module: torch.nn.Module
    example: NamedInputs
    call: Call
    leaves: list[Leaf]
    eager: Outputs
    declared: Declared
    options: Options
    short: bool
    places: Places
    weights: str = ""

    @property
    def tensors(self) -> list[Leaf]:
        """The leaves that become inputs of the file."""
        return [leaf for leaf in self.leaves if leaf.is_tensor]

    @property
    def where(self) -> str:
        """The model's path in the config."""
        return f"models.{self.spec.name}"


@dataclass(frozen=True, slots=True)
class Graph:
    """A finished graph, and how its edges relate to the module.

    Attributes:
        inputs: For each input of the file, the leaf that it stands for.
        outputs: For each output of the file, its place among the eager outputs.
        reading: What the capture made of the dims; empty for the older exporter, which tells nothing.
        output_shapes: By the file's output name, in the contract's grammar.
        program: Digest of the program that it was translated from; "" where none was taken.
        derived: For each dim that the capture found to follow from others, and that is no dim any more, its expression.
        captured: What capture gave; None for the older exporter.
        decomposed: The same after decomposition, from which the file was translated; likewise.
        fx: For values of the graph the program's node that makes the same value.
        unoptimized: The graph before the exporter's optimizer, with inputs and outputs of the same names; it shares the
            weights. None from the older exporter, which optimizes as it goes.
        lost: By the unoptimized graph's names, what the optimizer took for nothing and is not.
    """

    model: ir.Model
    inputs: dict[str, Leaf]
    outputs: dict[str, int]
    reading: Reading
    restrictions: list[Restriction]
    output_shapes: dict[str, list[int | str] | None]
    source_map: SourceMap
    strategy: str
    findings: list[Finding] = field(default_factory=list)
    program: str = ""
    derived: dict[str, str] = field(default_factory=dict)
    captured: Captured | None = None
    decomposed: torch.export.ExportedProgram | None = None
    fx: dict[str, str] = field(default_factory=dict)
    unoptimized: ir.Model | None = None
    lost: Mapping[str, Lost] = field(default_factory=dict)
