"""Contracts made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx_ci.records.contract import Contract, DimContract, TensorContract
from onnx_ci.records.environment import Environment

ENVIRONMENT = Environment(onnx_ci="1", python="3.11", platform="Linux", cpu="", cores=1)


def contract(
    inputs: Mapping[str, tuple[str, list[int | str] | None]] | list[TensorContract],
    dims: Mapping[str, DimContract] | None = None,
    **more: Any,
) -> Contract:
    """A contract of these inputs: name to dtype and shape."""
    listed = inputs if isinstance(inputs, list) else [tensor(name, *one) for name, one in inputs.items()]
    given: dict[str, Any] = {"model": "classifier", "variant": None, **more}
    return Contract(
        schema_version=1,
        contract_version=1,
        inputs=listed,
        outputs=[],
        dims=dict(dims or {}),
        batch="independent",
        strategy="own",
        exporter="dynamo",
        opset=20,
        ir_version=10,
        domains={"": 20},
        environment=ENVIRONMENT,
        **given,
    )


def tensor(name: str, dtype: str, shape: list[int | str] | None, **more: Any) -> TensorContract:
    return TensorContract(name=name, dtype=dtype, shape=shape, **more)


def dim(least: int, most: int | None, step: int = 1) -> DimContract:
    return DimContract(min=least, max=most, multiple_of=step, declared=True)
