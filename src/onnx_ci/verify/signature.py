"""Stage contract, the part that the bytes can answer: what the file takes and gives, against what is promised.

Promised is what the config declares (the job) and what the export wrote down (contract.json).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx

from onnx_ci.artifact import graph, layout, safety
from onnx_ci.records.contract import Contract, TensorContract
from onnx_ci.records.model import InputSpec, ModelSpec
from onnx_ci.records.result import Finding, finding
from onnx_ci.verify import dims
from onnx_ci.verify.dims import Judged, Signature, Tensor


def read(model: onnx.ModelProto) -> Signature:
    """Reads the signature of a file; inputs that only give an initializer's type are none."""
    initializers = {item.name for item in model.graph.initializer}
    return Signature(
        inputs=[_tensor(item) for item in model.graph.input if item.name not in initializers],
        outputs=[_tensor(item) for item in model.graph.output],
    )


def judge(model: onnx.ModelProto, contract: Contract, declared: ModelSpec) -> list[Finding]:
    """Judges names, order, dtypes, dims, opset, IR version and number of files."""
    signature = read(model)
    promises = _Promises(contract, declared)
    taken = [item.name for item in signature.inputs]
    found = [
        *_names("inputs", taken, promises.input_names()),
        *_names("outputs", [item.name for item in signature.outputs], promises.output_names(), taken),
        *_opset(model, contract, declared),
        *_ir(model, declared),
        *_files(model, declared),
    ]
    by_name = {item.name: item for item in [*signature.inputs, *signature.outputs]}
    if all(item.name in by_name for item in [*contract.inputs, *contract.outputs]):
        inputs = [(by_name[item.name], item, promises.of(item)) for item in contract.inputs]
        outputs = [(by_name[item.name], item, None) for item in contract.outputs]
        found += [
            *_dtypes([*inputs, *outputs]),
            *dims.static(inputs, declared, contract),
            *dims.tied(inputs, declared, contract),
        ]
    at: dict[str, Any] = {"file": declared.declared_in or None, "line": declared.declared_at}
    return [replace(one, **at) if one.status in ("fail", "warn") else one for one in found]


def _tensor(item: onnx.ValueInfoProto) -> Tensor:
    kind = item.type.WhichOneof("value")
    if kind != "tensor_type":
        return Tensor(item.name, _dtype_of(item.type), None)
    tensor = item.type.tensor_type
    shape: tuple[int | str | None, ...] | None = None
    if tensor.HasField("shape"):
        shape = tuple(
            dim.dim_value if dim.HasField("dim_value") else (dim.dim_param or None) for dim in tensor.shape.dim
        )
    return Tensor(item.name, graph.dtype_name(tensor.elem_type), shape)


def _dtype_of(given: onnx.TypeProto) -> str:
    """The dtype of a value of any kind: "sequence(map(int64,float32))"."""
    kind = given.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        return f"{kind.partition('_')[0]}({_dtype_of(getattr(given, kind).elem_type)})"
    if kind == "map_type":
        return f"map({graph.dtype_name(given.map_type.key_type)},{_dtype_of(given.map_type.value_type)})"
    return graph.dtype_name(given.tensor_type.elem_type)


@dataclass(frozen=True, slots=True)
class _Promise:
    """One list of names that the file must have: where it is promised, and the other names that stand for them."""

    where: str
    names: list[str]


@dataclass(frozen=True, slots=True)
class _Promises:
    contract: Contract
    declared: ModelSpec

    def input_names(self) -> list[_Promise]:
        """From contract.json; and input_names of the config, which may name parameters of forward instead."""
        file_names = [item.name for item in self.contract.inputs]
        promises = [_Promise(layout.CONTRACT, file_names)]
        given = self.declared.input_names
        if given is not None:
            frozen = {_parameter(path) for path in self.contract.frozen}
            parameters = list(dict.fromkeys(_parameter(item.source or item.name) for item in self.contract.inputs))
            wanted = [name for name in given if name in file_names or name not in frozen]
            as_parameters = set(wanted) == set(parameters) and set(wanted) != set(file_names)
            names = _by_parameter(wanted, self.contract.inputs) if as_parameters else wanted
            promises.append(_Promise("input_names", names))
        return promises

    def output_names(self) -> list[_Promise]:
        promises = [_Promise(layout.CONTRACT, [item.name for item in self.contract.outputs])]
        if self.declared.outputs is not None:
            promises.append(_Promise("outputs", self.declared.outputs))
        return promises

    def of(self, tensor: TensorContract) -> InputSpec | None:
        """What the config declares of an input, by its place in forward or its name."""
        return self.declared.inputs.get(tensor.source) or self.declared.inputs.get(tensor.name)


def _rename(what: str, clashes: Sequence[str]) -> str:
    if clashes:
        return (
            f"An input of the file is called {clashes[0]} already, and names in ONNX are unique: give the output a "
            f"name of its own in the config (outputs), {clashes[0]}_out say, and in the services."
        )
    key = "input_names" if what == "inputs" else "outputs"
    return f"Set the names in the config ({key}) to what services use, and export again."


def _parameter(source: str) -> str:
    return re.split(r"[.\[]", source, maxsplit=1)[0]


def _by_parameter(parameters: Sequence[str], tensors: Sequence[TensorContract]) -> list[str]:
    """The file's names in the order of these parameters; a nested parameter stands for all its tensors."""
    return [item.name for name in parameters for item in tensors if _parameter(item.source or item.name) == name]


def _names(what: str, actual: list[str], promises: Sequence[_Promise], taken: Sequence[str] = ()) -> list[Finding]:
    """Names and order of inputs or outputs; `taken` are names that these can't have, since inputs have them."""
    found: list[Finding] = []
    for promise in promises:
        data = {"promised": promise.names, "file": actual}
        missing = [name for name in promise.names if name not in actual]
        extra = [name for name in actual if name not in promise.names]
        if missing or extra or len(actual) != len(promise.names):
            parts = [f"{', '.join(missing)} missing"] if missing else []
            parts += [f"{', '.join(extra)} not promised"] if extra else []
            message = f"{what} of the file are {_list(actual)}, {promise.where} promises {_list(promise.names)}"
            found.append(
                finding(
                    "contract.names",
                    "fail",
                    what,
                    message + (f": {'; '.join(parts)}" if parts else ""),
                    hint=_rename(what, [name for name in missing if name in taken]),
                    data=data,
                )
            )
        elif actual != promise.names:
            found.append(
                finding(
                    "contract.order",
                    "fail",
                    what,
                    f"{what} of the file come as {_list(actual)}, {promise.where} promises {_list(promise.names)}",
                    hint="A service that feeds or reads by position gets the wrong tensor without an error.",
                    data=data,
                )
            )
    if found:
        return found
    return [
        finding("contract.names", "pass", what, f"{what}: {_list(actual)}", data={"file": actual}),
        finding("contract.order", "pass", what, f"{what} stand in the promised order"),
    ]


def _dtypes(judged: Sequence[Judged]) -> list[Finding]:
    found = []
    for tensor, promised, declared in judged:
        data = {"file": tensor.dtype, "contract": promised.dtype, "declared": declared.dtype if declared else None}
        if declared and declared.dtype and declared.dtype != tensor.dtype:
            found.append(
                finding(
                    "contract.dtype",
                    "fail",
                    tensor.name,
                    f"{tensor.name}: production sends {declared.dtype}, the file takes {tensor.dtype}",
                    hint=f"Cast to {tensor.dtype} in the service before it calls the session, or export with an "
                    f"example of {declared.dtype}.",
                    data=data,
                )
            )
        elif promised.dtype != tensor.dtype:
            message = f"{tensor.name}: {layout.CONTRACT} promises {promised.dtype}, the file has {tensor.dtype}"
            found.append(finding("contract.dtype", "fail", tensor.name, message, data=data))
    if found:
        return found
    dtypes = {tensor.name: tensor.dtype for tensor, _, _ in judged}
    message = "dtypes: " + ", ".join(f"{name} {dtype}" for name, dtype in dtypes.items())
    return [finding("contract.dtype", "pass", "", message, data={"file": dtypes})]


def _opset(model: onnx.ModelProto, contract: Contract, declared: ModelSpec) -> list[Finding]:
    domains = {item.domain if item.domain != "ai.onnx" else "": item.version for item in model.opset_import}
    actual = domains.get("")
    wanted, where = (
        (declared.export.opset, "the config") if declared.export.opset else (contract.opset, layout.CONTRACT)
    )
    data = {"file": domains, "wanted": wanted}
    if actual == wanted:
        return [finding("contract.opset", "pass", "", f"opset {actual}", data=data)]
    return [
        finding(
            "contract.opset",
            "fail",
            "opset",
            f"{where} asks for opset {wanted}, the file has {actual}",
            hint="The exporter has a lowest opset of its own and delivers that without a word: ask for a higher one.",
            data=data,
        )
    ]


def _ir(model: onnx.ModelProto, declared: ModelSpec) -> list[Finding]:
    limit = declared.export.max_ir
    if limit is None:
        return []
    data = {"file": model.ir_version, "max_ir": limit}
    if model.ir_version <= limit:
        message = f"IR version {model.ir_version}, the oldest runtime in production reads {limit}"
        return [finding("contract.ir", "pass", "", message, data=data)]
    return [
        finding(
            "contract.ir",
            "fail",
            "IR version",
            f"the file has IR version {model.ir_version}, the oldest runtime in production reads {limit} at most "
            "(max_ir): it will refuse the file",
            hint=f"Update the runtime in production, or write the file with IR version {limit}.",
            data=data,
        )
    ]


def _files(model: onnx.ModelProto, declared: ModelSpec) -> list[Finding]:
    if not declared.export.single_file:
        return []
    external = safety.external_files(model)
    if not external:
        return [finding("contract.files", "pass", "", "the weights lie inside the model file")]
    return [
        finding(
            "contract.files",
            "fail",
            ", ".join(external),
            f"single_file is set, and the file keeps weights in {', '.join(external)}",
            hint="Ship both files, or export again so that the weights go inside (below 2 GB).",
            data={"external": external},
        )
    ]


def _list(names: Sequence[str]) -> str:
    return "[" + ", ".join(names) + "]"
