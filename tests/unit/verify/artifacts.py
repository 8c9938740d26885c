"""Artifact folders made by hand with onnx.helper: no torch, milliseconds each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_ci.artifact import layout, tensors
from onnx_ci.records.cases import Case, CaseList, CaseOutput, Origin
from onnx_ci.records.contract import Contract, DimContract, TensorContract
from onnx_ci.records.environment import Environment
from onnx_ci.records.model import DimSpec, InputSpec, JobSpec, ModelSpec, TargetSpec
from onnx_ci.records.source_map import Origin as SourceOrigin
from onnx_ci.records.source_map import SourceMap

CPU = TargetSpec(name="cpu", provider="CPUExecutionProvider")
GPU = TargetSpec(name="gpu", provider="CUDAExecutionProvider")
ENVIRONMENT = Environment(
    onnx_ci="1.0.0",
    python="3.11.9",
    platform="Linux-x86_64",
    cpu="a processor",
    cores=2,
    packages={"torch": "2.13.0", "onnx": "1.23.2", "numpy": "2.4.6"},
)
RANDOM = np.random.default_rng(20261201)
WEIGHT = RANDOM.normal(size=(3, 2)).astype(np.float32)
BIAS = RANDOM.normal(size=(2,)).astype(np.float32)


def value(name: str, kind: int, shape: Sequence[int | str | None] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
    *,
    opset: int = 20,
    ir: int = 10,
    domains: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    graph = helper.make_graph(list(nodes), "main", list(inputs), list(outputs), list(initializers))
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(*item) for item in (domains or {}).items())]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir)


def linear_model(*, weight: np.ndarray | None = None, batch: int | str = "batch") -> onnx.ModelProto:
    """y = x @ weight + bias; x is [batch, 3], y is [batch, 2]."""
    return model_of(
        [
            helper.make_node("MatMul", ["x", "weight"], ["product"], name="node_matmul"),
            helper.make_node("Add", ["product", "bias"], ["y"], name="node_add"),
        ],
        [value("x", TensorProto.FLOAT, [batch, 3])],
        [value("y", TensorProto.FLOAT, [batch, 2])],
        [
            numpy_helper.from_array(WEIGHT if weight is None else weight, "weight"),
            numpy_helper.from_array(BIAS, "bias"),
        ],
    )


@dataclass
class MadeCase:
    """One case to write. Arrays by name, in order."""

    name: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    oracle: dict[str, Any] | None
    origin: Origin = "user"
    dims: dict[str, int] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)


def linear_case(name: str = "example", batch: int = 2, origin: Origin = "example") -> MadeCase:
    x = np.random.default_rng(batch).normal(size=(batch, 3)).astype(np.float32)
    exact = x.astype(np.float64) @ WEIGHT.astype(np.float64) + BIAS.astype(np.float64)
    return MadeCase(name, {"x": x}, {"y": x @ WEIGHT + BIAS}, {"y": exact}, origin, {"batch": batch})


def linear_job(**changes: Any) -> JobSpec:
    model = ModelSpec(
        name="linear",
        entrypoint="model.py:build",
        inputs={"x": InputSpec(dtype="float32", shape=["batch", 3])},
        dims={"batch": DimSpec(min=1, max=8, example=2)},
        declared_in="onnx-ci.toml",
        declared_at=3,
    )
    return JobSpec(model=replace(model, **changes), targets=[CPU])


def contract_of(model: onnx.ModelProto, job: JobSpec, **changes: Any) -> Contract:
    """The contract that fits a file."""

    def tensor(item: onnx.ValueInfoProto) -> TensorContract:
        kind = item.type.tensor_type
        shape = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in kind.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type).name
        return TensorContract(name=item.name, dtype=dtype, shape=shape, source=item.name)

    made = Contract(
        schema_version=1,
        model=job.model.name,
        variant=None,
        contract_version=1,
        inputs=[tensor(item) for item in model.graph.input],
        outputs=[tensor(item) for item in model.graph.output],
        dims={name: DimContract(min=dim.min or 0, max=dim.max, declared=True) for name, dim in job.model.dims.items()},
        batch="independent",
        strategy="own",
        exporter="dynamo",
        opset=model.opset_import[0].version,
        ir_version=model.ir_version,
        domains={item.domain: item.version for item in model.opset_import},
        environment=ENVIRONMENT,
        halves=["bfloat16", "float16"],
    )
    return replace(made, **changes)


def write_artifact(
    folder: Path,
    *,
    model: onnx.ModelProto | None = None,
    cases: Sequence[MadeCase] | None = None,
    job: JobSpec | None = None,
    contract: Contract | None = None,
    external: bool = False,
    origins: Mapping[str, SourceOrigin] | None = None,
) -> layout.Artifact:
    """Writes a whole artifact folder; by default a healthy linear model with two cases."""
    folder.mkdir(parents=True, exist_ok=True)
    job = job or linear_job()
    model = model or linear_model()
    cases = [linear_case(), linear_case("batch=5", 5, "boundary")] if cases is None else cases
    contract = contract or contract_of(model, job)
    save = {"save_as_external_data": True, "location": layout.DATA, "size_threshold": 0} if external else {}
    onnx.save_model(onnx.ModelProto.FromString(model.SerializeToString()), str(folder / layout.MODEL), **save)
    layout.write_record(folder, layout.CONTRACT, contract)
    layout.write_record(folder, layout.CONFIG, job)
    layout.write_record(folder, layout.SOURCE_MAP, SourceMap(schema_version=1, values=dict(origins or {})))
    listed = [_write_case(folder, index, case) for index, case in enumerate(cases)]
    layout.write_record(folder, layout.CASES, CaseList(schema_version=1, cases=listed))
    layout.write_manifest(folder)
    return layout.Artifact(folder)


def _write_case(folder: Path, index: int, case: MadeCase) -> Case:
    where = folder / f"test_data_set_{index}"
    tensors.write_values(where, "input", list(case.inputs), list(case.inputs.values()))
    tensors.write_values(where, "output", list(case.outputs), list(case.outputs.values()))
    if case.oracle is not None:
        tensors.write_values(where, "oracle", list(case.oracle), list(case.oracle.values()))
    outputs = [
        CaseOutput(
            name=name,
            dtype=tensors.dtype_name(array),
            shape=list(array.shape) if isinstance(array, np.ndarray) else [],
            e_torch=_error(array, case.oracle[name]) if case.oracle and name in case.oracle else None,
        )
        for name, array in case.outputs.items()
    ]
    return Case(index=index, name=case.name, origin=case.origin, why="", dims=case.dims, outputs=outputs, **case.more)


def _error(array: Any, oracle: Any) -> float | None:
    if not isinstance(array, np.ndarray):
        return None
    norm = float(np.linalg.norm(oracle))
    return float(np.linalg.norm(np.asarray(array, np.float64) - oracle)) / norm if norm else 0.0
