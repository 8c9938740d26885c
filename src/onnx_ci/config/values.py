"""The types of single config values that need more than a type: each says what is wrong and what was likely meant."""

from __future__ import annotations

import datetime
import keyword
import math
import re
from typing import Annotated, Any, NoReturn

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from onnx_ci.config.problems import closest, show
from onnx_ci.records import expression

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "bfloat16", "float16", "float32", "float64", "complex64", "complex128", "string",
)  # fmt: skip
_DTYPE_ALIASES = {
    "float": "float32", "double": "float64", "half": "float16", "fp16": "float16", "fp32": "float32",
    "fp64": "float64", "bf16": "bfloat16", "long": "int64", "int": "int64", "short": "int16", "byte": "uint8",
    "boolean": "bool", "str": "string", "object": "string",
}  # fmt: skip
_VENDORS = (
    "ACL", "ArmNN", "Azure", "CANN", "CPU", "CUDA", "CoreML", "Dml", "Dnnl", "JS", "MIGraphX", "Nnapi", "NvTensorRTRTX",
    "OpenVINO", "QNN", "ROCM", "Rknpu", "SNPE", "Tensorrt", "Tvm", "VSINPU", "VitisAI", "WebGPU", "WebNN", "Xnnpack",
)  # fmt: skip
PROVIDERS = tuple(f"{vendor}ExecutionProvider" for vendor in _VENDORS)
_PROVIDER_ALIASES = {"gpu": "CUDA", "trt": "Tensorrt", "directml": "Dml", "onednn": "Dnnl"}
_UNITS = {"B": 1} | {
    f"{prefix}{unit}": base**power
    for power, prefix in enumerate("KMGT", 1)
    for unit, base in (("B", 1000), ("iB", 1024))
}
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600}
_LONGEST = 7 * 24 * 3600
_LARGEST = 2**63 - 1
_SMALLEST_MEMORY = 64 * 2**20


def wrong(message: str, hint: str = "") -> NoReturn:
    """Stops the validation of one value."""
    raise PydanticCustomError("onnx_ci", "{message}", {"message": message, "hint": hint})


def _name(value: str) -> str:
    if value.startswith("."):
        wrong("a name may not start with a dot", "it becomes the name of a folder or a file")
    if value.startswith("-"):
        wrong("a name may not start with a hyphen", "the command line would read it as an option")
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", value):
        wrong(
            "a name is 1 to 64 of A-Z a-z 0-9 . _ -",
            'it becomes the name of a folder; "@" is kept for variants' if "@" in value else "it names a folder",
        )
    if value.endswith("."):
        wrong("a name may not end with a dot", "Windows drops it from the name of a folder")
    return value


def _dim_name(value: str) -> str:
    if not value.isascii() or not value.isidentifier() or keyword.iskeyword(value):
        wrong(f"{show(value)} is not a dim name", "a dim name is a Python identifier: batch, height, n_tokens")
    return value


def _sum(value: str) -> str:
    try:
        parsed = expression.parse(value)
        for name in sorted(parsed.names):
            _dim_name(name)
        rises = parsed.rises()
    except expression.ExpressionError:
        rises = False
    if not rises:
        wrong(
            f"{show(value)} is no sum of dims",
            'a size that follows from dims is a sum of them, each times a whole number: "past + new", "2*half + 1"',
        )
    return value


def _axis(value: Any) -> int | str:
    if isinstance(value, str):
        return _dim_name(value) if not set(value) & set("+*") else _sum(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        wrong(f"expected a size or the name of a dim, got {show(value)}")
    return value


def _dtype(value: Any) -> str:
    if not isinstance(value, str):
        wrong(f'expected a dtype such as "float32", got {show(value)}')
    bare = value.removeprefix("torch.").removeprefix("numpy.").removeprefix("np.")
    if value in DTYPES:
        return value
    meant = bare if bare in DTYPES else _DTYPE_ALIASES.get(bare.lower()) or closest(bare, DTYPES)
    wrong(f"{show(value)} is not a dtype", f"did you mean {meant}?" if meant else f"one of {', '.join(DTYPES)}")


def _provider(value: Any) -> str:
    if not isinstance(value, str):
        wrong(f'expected the full name of a provider, such as "CPUExecutionProvider", got {show(value)}')
    if value in PROVIDERS:
        return value
    bare = re.sub("ExecutionProvider$", "", value, flags=re.IGNORECASE)
    known = {vendor.lower(): vendor for vendor in _VENDORS} | _PROVIDER_ALIASES
    is_full = re.fullmatch(r"[A-Za-z][A-Za-z0-9]*ExecutionProvider", value)
    vendor = known.get(bare.lower()) or closest(bare, _VENDORS, likeness=0.75 if is_full else 0.6)
    if is_full and not vendor:
        return value  # a provider from a plugin: ONNX Runtime will say whether it has it
    meant = f"{vendor}ExecutionProvider" if vendor else closest(value, PROVIDERS)
    wrong(
        f"{show(value)} is not the full name of an execution provider",
        f"did you mean {meant}?" if meant else 'such as "CUDAExecutionProvider"',
    )


def _memory(value: Any) -> int:
    size = value
    if isinstance(value, str):
        match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?) ?([A-Za-z]+)", value.strip())
        if not match or match[2] not in _UNITS:
            near = {name.lower(): name for name in _UNITS} | {"g": "GiB", "m": "MiB", "k": "KiB", "t": "TiB"}
            unit = near.get(match[2].lower(), "") if match else ""
            hint = f'did you mean "{match[1]}{unit}"?' if match and unit else 'such as "8GiB"'
            wrong(f"{show(value)} is not an amount of memory", hint)
        size = int(float(match[1]) * _UNITS[match[2]])
    if isinstance(size, bool) or not isinstance(size, int):
        wrong(f'expected an amount of memory such as "8GiB", or a number of bytes, got {show(value)}')
    if not _SMALLEST_MEMORY <= size <= _LARGEST:
        wrong(f"{show(value)} is out of range", 'at least "64MiB"; importing torch alone takes more')
    return size


def _seconds(value: Any) -> float:
    seconds = value
    if isinstance(value, str):
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?) ?(s|m|min|h)", value.strip())
        if not match:
            wrong(f"{show(value)} is not a time", 'a number of seconds, or "90s", "10min", "2h"')
        seconds = float(match[1]) * _SECONDS[match[2]]
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        wrong(f"expected a number of seconds, got {show(value)}")
    if not 0 < seconds <= _LONGEST:
        wrong(f"expected more than 0 and at most {_LONGEST} seconds, got {show(value)}")
    return float(seconds)


def _date(value: Any) -> datetime.date:
    if isinstance(value, datetime.datetime) or not isinstance(value, datetime.date):
        quoted = isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value)
        wrong(f"expected a date such as 2027-06-01, got {show(value)}", "remove the quotes" if quoted else "")
    return value


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _allowed(value: Any) -> Any:
    """Operators with the reason of each; a plain list gives none."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return dict.fromkeys(_distinct(value), "")
    if isinstance(value, dict) and all(isinstance(why, str) and why.strip() for why in value.values()):
        return value
    wrong(f"expected operators, or a table of operators with a reason each, got {show(value)}")


def plain(value: Any, where: str = "") -> Any:
    """Lets through what is the same again after a passage through JSON.

    Raises:
        PydanticCustomError: A date, a time, or a number that is not finite.
    """
    if isinstance(value, dict):
        return {key: plain(item, f"{where}.{key}" if where else key) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item, f"{where}[{at}]") for at, item in enumerate(value)]
    inside = f"{where}: " if where else ""
    if isinstance(value, float) and not math.isfinite(value):
        wrong(f"{inside}{show(value)} can't be handed on", "set it inside the function")
    if isinstance(value, (datetime.date, datetime.time)):
        wrong(f"{inside}a date or time can't be handed on", f'write it as text: "{value}"')
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _LARGEST:
        wrong(f"{inside}{show(value)} does not fit into 64 bits")
    return value


def _scalar(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        wrong(f"expected text, a number or a boolean, got {show(value)}")
    return plain(value)


def _text(value: str) -> str:
    if not value.strip():
        wrong("expected text, got an empty one")
    return value


def _distinct(value: list[str]) -> list[str]:
    twice = sorted({item for item in value if value.count(item) > 1})
    if twice:
        wrong(f"{show(twice[0])} is listed twice")
    return value


def _either(*schemas: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": list(schemas)})


Text = Annotated[str, AfterValidator(_text)]
Name = Annotated[str, AfterValidator(_name), Field(pattern="^[A-Za-z0-9_][A-Za-z0-9._-]*$")]
DimName = Annotated[str, AfterValidator(_dim_name)]
Names = Annotated[list[Text], AfterValidator(_distinct)]
Axis = Annotated[Any, BeforeValidator(_axis), _either({"type": "integer", "minimum": 0}, {"type": "string"})]
DType = Annotated[str, BeforeValidator(_dtype), WithJsonSchema({"type": "string", "enum": list(DTYPES)})]
Provider = Annotated[str, BeforeValidator(_provider)]
Memory = Annotated[int, BeforeValidator(_memory), _either({"type": "string"}, {"type": "integer"})]
Seconds = Annotated[
    float, BeforeValidator(_seconds), _either({"type": "number", "exclusiveMinimum": 0}, {"type": "string"})
]
Date = Annotated[datetime.date, BeforeValidator(_date)]
Labels = Annotated[
    list[Text],
    BeforeValidator(_one_or_more),
    Field(min_length=1),
    _either({"type": "array", "items": {"type": "string"}}, {"type": "string"}),
]
Allowed = Annotated[
    dict[Text, str],
    BeforeValidator(_allowed),
    _either(
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "additionalProperties": {"type": "string"}},
    ),
]
Plain = Annotated[Any, BeforeValidator(plain), WithJsonSchema({})]
Scalar = Annotated[Any, BeforeValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean"]})]
Size = Annotated[int, Field(ge=0, le=_LARGEST)]
Count = Annotated[int, Field(ge=1, le=_LARGEST)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Error = Annotated[float, Field(ge=0, allow_inf_nan=False)]
