"""Cases as files: ``input_<i>.pb``, ``output_<i>.pb`` (as onnx's test runners read them) and ``oracle_<i>.pb``.

A value is an array, a list of arrays (a sequence), or None (an empty optional). Strings are arrays of object dtype;
bfloat16 is ml_dtypes' type, as onnx's own conversion gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from onnx_ci.artifact.layout import ArtifactError

Array = npt.NDArray[Any]
Value = Array | list[Array] | None
Kind = Literal["input", "output", "oracle"]


def write_values(folder: Path, kind: Kind, names: Sequence[str], values: Sequence[Value]) -> None:
    """Writes one file a value; the name of each is kept inside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for index, (name, value) in enumerate(zip(names, values, strict=True)):
        (folder / f"{kind}_{index}.pb").write_bytes(_to_bytes(name, value))


def read_values(folder: Path, kind: Kind) -> dict[str, Value]:
    """Reads what `write_values` or another tool wrote, by name, in the order of the numbers.

    Raises:
        ArtifactError: A number is missing, a name stands twice, or a file can't be read.
    """
    paths = sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: _number(path))
    values: dict[str, Value] = {}
    for index, path in enumerate(paths):
        if _number(path) != index:
            raise ArtifactError(f"{kind}_{index}.pb is missing", where=str(folder))
        try:
            name, value = _from_bytes(path.read_bytes())
        except Exception as error:  # protobuf and numpy raise many kinds
            raise ArtifactError(f"not a tensor: {error}", where=str(path)) from error
        name = name or f"{kind}_{index}"
        if name in values:
            raise ArtifactError(f"{name} stands twice", where=str(folder))
        values[name] = value
    return values


def dtype_name(value: Value) -> str:
    """The dtype by numpy's name, "bfloat16", "string", "sequence(…)" or "optional"."""
    if value is None:
        return "optional"
    if isinstance(value, list):
        return f"sequence({dtype_name(value[0]) if value else ''})"
    return "string" if value.dtype.kind in "OUS" else value.dtype.name


def _number(path: Path) -> int:
    digits = path.stem.rpartition("_")[2]
    return int(digits) if digits.isdigit() else -1


def _to_bytes(name: str, value: Value) -> bytes:
    if value is None:
        proto = onnx.OptionalProto(name=name, elem_type=onnx.OptionalProto.UNDEFINED)
        return bytes(proto.SerializeToString())
    if isinstance(value, list):
        sequence = numpy_helper.from_list(value, name)
        return bytes(sequence.SerializeToString())
    array = np.asarray(value)
    if array.dtype.kind in "US":
        array = array.astype(object)
    return bytes(numpy_helper.from_array(array, name).SerializeToString())


def _from_bytes(raw: bytes) -> tuple[str, Value]:
    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(raw)
        if tensor.data_type != onnx.TensorProto.UNDEFINED:
            return tensor.name, numpy_helper.to_array(tensor)
    except Exception:  # not a tensor: one of the other two, or nothing
        pass
    optional = onnx.OptionalProto()
    optional.ParseFromString(raw)
    if optional.elem_type == onnx.OptionalProto.UNDEFINED and not optional.HasField("tensor_value"):
        sequence = onnx.SequenceProto()
        sequence.ParseFromString(raw)
        if sequence.elem_type == onnx.SequenceProto.TENSOR:
            return sequence.name, numpy_helper.to_list(sequence)
        return optional.name, None
    return optional.name, numpy_helper.to_optional(optional)
