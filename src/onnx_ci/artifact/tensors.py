"""Cases as files: ``input_<i>.pb``, ``output_<i>.pb`` (as onnx's test runners read them) and ``oracle_<i>.pb``.

A value is an array, a list (a sequence) of arrays or of maps from a key to a scalar, or None (an empty optional).
Strings are arrays of object dtype; bfloat16 and smaller are ml_dtypes' types, as onnx's own conversion gives them.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from onnx_ci.artifact.layout import ArtifactError

Array = npt.NDArray[Any]
Value = Array | list[Any] | dict[Any, Any] | None
Kind = Literal["input", "output", "oracle"]

_LARGEST = (1 << 31) - 1  # bytes of a protobuf message
_DATA_FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")


def write_values(folder: Path, kind: Kind, names: Sequence[str], values: Sequence[Value]) -> None:
    """Writes one file a value; the name of each is kept inside it.

    Raises:
        ArtifactError: A value has a dtype that ONNX lacks, or is larger than a file of this kind can be.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for index, (name, value) in enumerate(zip(names, values, strict=True)):
        (folder / f"{kind}_{index}.pb").write_bytes(_to_bytes(name, value))


def read_values(folder: Path, kind: Kind) -> dict[str, Value]:
    """Reads what `write_values` or another tool wrote, by name, in the order of the numbers.

    Raises:
        ArtifactError: A number is missing, a name stands twice, or a file can't be read.
    """
    numbered = {_number(path, kind): path for path in sorted(folder.glob(f"{kind}_*.pb"))}
    values: dict[str, Value] = {}
    for index in range(len(numbered)):
        if index not in numbered:
            raise ArtifactError(f"{kind}_{index}.pb is missing", where=str(folder))
        path = numbered[index]
        try:
            name, value = _from_bytes(_read(path))
        except ArtifactError:
            raise
        except Exception as error:  # protobuf and numpy raise many kinds
            raise ArtifactError(f"not a tensor, sequence or optional: {error}", where=str(path)) from error
        name = name or f"{kind}_{index}"
        if name in values:
            raise ArtifactError(f"{name} stands twice", where=str(folder))
        values[name] = value
    return values


def dtype_name(value: Value) -> str:
    """The dtype by numpy's name, "bfloat16", "string", "sequence(…)", "map(…)" or "optional"."""
    if value is None:
        return "optional"
    if isinstance(value, list):
        return f"sequence({dtype_name(value[0]) if value else ''})"
    if isinstance(value, dict):
        key, item = next(iter(value.items()), ("", None))
        return f"map({'string' if isinstance(key, str) else 'int64'},{dtype_name(item) if value else ''})"
    return "string" if value.dtype.kind in "OUS" else str(value.dtype.name)


def _number(path: Path, kind: str) -> int:
    match = re.fullmatch(rf"{kind}_(0|[1-9][0-9]*)\.pb", path.name)
    if not match:
        raise ArtifactError(f"{path.name} has no number", where=str(path.parent), hint=f"Name it {kind}_0.pb, …")
    return int(match.group(1))


def _read(path: Path) -> bytes:
    """Reads a regular file; anything else (a pipe would block for ever) is refused.

    A link is followed here, since samples of the user may be links; an artifact's are told by its manifest.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ArtifactError("not a regular file", where=str(path))
    if found.st_size > _LARGEST:
        raise ArtifactError(f"{found.st_size} bytes are more than a tensor file may have", where=str(path))
    return path.read_bytes()


def _to_bytes(name: str, value: Value) -> bytes:
    if value is None:
        proto: Any = onnx.OptionalProto(name=name, elem_type=onnx.OptionalProto.UNDEFINED)
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        proto = onnx.SequenceProto(name=name, elem_type=onnx.SequenceProto.MAP)
        proto.map_values.extend([_map(name, item) for item in value])
    elif isinstance(value, list):
        proto = numpy_helper.from_list([_plain(name, item) for item in value], name)
    elif isinstance(value, dict):
        raise ArtifactError(f"{name} is a map outside of a sequence, which the files of cases have no form for")
    else:
        proto = numpy_helper.from_array(_plain(name, value), name)
    if proto.ByteSize() > _LARGEST:
        raise ArtifactError(
            f"{name} has {proto.ByteSize()} bytes, more than a tensor file may have",
            hint="Choose a smaller max for the dims of this case.",
        )
    return bytes(proto.SerializeToString())


def _map(name: str, value: dict[Any, Any]) -> onnx.MapProto:
    """A map as ONNX has it; onnx's own conversion takes a key that is text for the name of a dtype."""
    text = all(isinstance(key, str) for key in value)
    if not text and not all(isinstance(key, int) for key in value):
        raise ArtifactError(f"{name} has keys that are neither whole numbers nor text")
    proto = onnx.MapProto(key_type=onnx.TensorProto.STRING if text else onnx.TensorProto.INT64)
    proto.string_keys.extend([key.encode() for key in value] if text else [])
    proto.keys.extend([] if text else list(value))
    proto.values.CopyFrom(numpy_helper.from_list([_plain(name, item) for item in value.values()]))
    return proto


def _plain(name: str, value: object) -> Array:
    """An array as onnx converts it: native byte order, contiguous, strings as objects."""
    array = np.asarray(value)
    if array.dtype.kind in "US":
        return array.astype(object)
    if array.dtype.kind == "O" and not all(isinstance(item, (str, bytes)) for item in array.reshape(-1)):
        raise ArtifactError(f"{name} holds Python objects that are no strings")
    array = np.asarray(array, array.dtype.newbyteorder("="), order="C")
    try:
        onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    except (KeyError, ValueError) as error:
        raise ArtifactError(f"{name} has dtype {array.dtype}, which ONNX lacks") from error
    return array


def _from_bytes(raw: bytes) -> tuple[str, Value]:
    tensor = _as_tensor(raw)
    if tensor is not None:
        return tensor.name, _array(tensor)
    sequence = onnx.SequenceProto()
    sequence.ParseFromString(raw)
    if not sequence.HasField("elem_type"):
        raise ValueError("the file is empty, or of another kind")
    if sequence.elem_type == onnx.SequenceProto.UNDEFINED and not sequence.tensor_values:
        return sequence.name, None
    if sequence.elem_type == onnx.SequenceProto.MAP:
        return sequence.name, [_from_map(item) for item in sequence.map_values]
    if sequence.elem_type != onnx.SequenceProto.TENSOR:
        raise ValueError("only tensors, sequences of tensors or maps, and empty optionals are supported")
    return sequence.name, [_array(item) for item in sequence.tensor_values]


def _from_map(proto: onnx.MapProto) -> dict[Any, Array]:
    keys = [key.decode() for key in proto.string_keys] or list(proto.keys)
    values = [_array(item) for item in proto.values.tensor_values]
    if any(item.ndim or item.dtype != values[0].dtype for item in values):
        raise ValueError("the values of a map are not scalars of one dtype")
    return dict(zip(keys, values, strict=True))


def _as_tensor(raw: bytes) -> onnx.TensorProto | None:
    """The message as a tensor, or None where it is one of the others; the file does not say what it is.

    A sequence's tensors fall on a tensor's `segment`, its maps on text, and its name on `dims`; name and data of a
    tensor have fields of their own. An optional that holds a tensor has the very bytes of a sequence of one, and is
    read as that.
    """
    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(raw)
    except Exception:  # a name that is no list of numbers: not a tensor
        return None
    if tensor.HasField("segment") or tensor.data_type == onnx.TensorProto.UNDEFINED:
        return None
    if tensor.string_data and tensor.data_type != onnx.TensorProto.STRING:
        return None
    stored = any(len(getattr(tensor, field)) for field in _DATA_FIELDS)
    own = stored or any(tensor.HasField(field) for field in ("name", "raw_data", "data_location"))
    return tensor if own or 0 in tensor.dims else None


def _array(tensor: onnx.TensorProto) -> Array:
    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
        raise ValueError("its data lies in another file, which cases may not")
    if any(size < 0 for size in tensor.dims):
        raise ValueError(f"a size is negative: {list(tensor.dims)}")
    return np.asarray(numpy_helper.to_array(tensor))
