"""What is promised about a model's inputs, outputs and dims: the artifact's ``contract.json``."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from onnx_ci.records.base import record
from onnx_ci.records.environment import Environment

SCHEMA_VERSION = 1
"""Version of contracts. 1: the first."""


@record
class DimContract:
    """The range of a dim, both ends included; `max` None is without end.

    Attributes:
        declared: Whether the config states the range; else it is the captured one.
        captured_min: What the capture guarantees; equal to `min` unless the declaration was narrowed.
    """

    min: int
    max: int | None
    multiple_of: int = 1
    declared: bool = False
    captured_min: int | None = None
    captured_max: int | None = None


@record
class TensorContract:
    """One input or output of the file.

    Attributes:
        name: In the file.
        dtype: numpy's name, or "bfloat16", "string", or "sequence(float32)" …
        shape: A size, a dim name, an expression of dim names (`records.expression`), or "?" for a size that only the
            data tell, an axis; None: unknown rank.
        source: Where it stands in PyTorch: "images", "batch.images", "outputs[1]".
        nonfinite: What is sent besides low, high or values, of "nan", "inf" and "-inf".
    """

    name: str
    dtype: str
    shape: list[int | str] | None
    source: str = ""
    low: float | None = None
    high: float | None = None
    values: list[float] | None = None
    nonfinite: list[str] = field(default_factory=list)


@record
class Contract:
    """Everything that a service, a golden or a later export may rely on.

    Attributes:
        frozen: Python arguments of forward that became constants of the graph, as JSON or their repr.
        preprocessing: sha256 of each named file.
        strategy: How the program was captured: "own", "own+refined", "public", "torchscript".
        narrowed: Dims whose declared range did not hold, with the guard.
        export_options: As they were given to the exporter; dims that the config declares as they were handed on.
        declared: What the config said: of inputs, dims, names and the batch, as JSON; what it left out is left out.
        domains: Operator set version by domain ("" is ai.onnx).
        halves: Floats narrower than float32 that the captured program computes with; None where none was captured.
    """

    schema_version: int
    model: str
    variant: str | None
    contract_version: int
    inputs: list[TensorContract]
    outputs: list[TensorContract]
    dims: dict[str, DimContract]
    batch: str
    strategy: str
    exporter: str
    opset: int
    ir_version: int
    domains: dict[str, int]
    environment: Environment
    frozen: dict[str, Any] = field(default_factory=dict)
    kwargs: dict[str, Any] = field(default_factory=dict)
    preprocessing: dict[str, str] = field(default_factory=dict)
    narrowed: dict[str, str] = field(default_factory=dict)
    export_options: dict[str, Any] = field(default_factory=dict)
    declared: dict[str, Any] = field(default_factory=dict)
    halves: list[str] | None = None
