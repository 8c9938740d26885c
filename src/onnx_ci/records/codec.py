"""Records to JSON and back, strictly: an unknown key, a missing one or another type is an error with its path.

Only the standard library, since both sides import it. The tool reads what comes from outside through pydantic instead
(`report.read`, `worker.launch`), over these same dataclasses.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

T = TypeVar("T")
JSON = Any
_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class RecordError(ValueError):
    """JSON that is not the record it should be; the message starts with the path inside it."""


def encode(value: Any) -> JSON:
    """Turns a record into plain JSON values; floats that JSON lacks become "nan", "inf" and "-inf"."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {_text(str(key)): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise TypeError(f"{type(value).__name__} can't be written as JSON: {value!r:.60}")


def _text(value: str) -> str:
    """Text that UTF-8 can hold: half a surrogate pair, as in names of files that are not UTF-8, becomes its escape."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def dumps(value: Any, *, indent: int | None = 1) -> str:
    """Serializes a record, with sorted keys and a final newline, so that equal records are equal bytes."""
    return json.dumps(encode(value), indent=indent, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n"


def loads(cls: type[T], text: str | bytes, *, path: str = "") -> T:
    """Parses a record from JSON text.

    Raises:
        RecordError: The text is no JSON, or not this record.
    """
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path or 'JSON'}: not JSON: {error}") from error
    return decode(cls, value, path=path)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key in found if sum(1 for name, _ in pairs if name == key) > 1)
        raise ValueError(f"the key {twice!r:.60} stands twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def decode(cls: type[T], value: JSON, *, path: str = "") -> T:
    """Checks JSON values against a type built of dataclasses, lists, dicts, unions and literals.

    Raises:
        RecordError: With the path of the first value that does not fit.
    """
    return typing.cast("T", _decode(cls, value, path))


def _decode(kind: Any, value: JSON, path: str) -> Any:
    if kind is Any:
        return value
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _decode_union(args, value, path)
    if origin is Literal:
        if value not in args:
            raise RecordError(f"{path}: expected one of {', '.join(map(repr, args))}, got {value!r:.60}")
        return value
    if dataclasses.is_dataclass(kind):
        return _decode_record(kind, value, path)
    if origin is tuple:
        return tuple(_decode(args[0], item, f"{path}[{at}]") for at, item in enumerate(_expect(list, value, path)))
    if origin is list:
        return [_decode(args[0], item, f"{path}[{at}]") for at, item in enumerate(_expect(list, value, path))]
    if origin is dict:
        return {key: _decode(args[1], item, f"{path}.{key}") for key, item in _expect(dict, value, path).items()}
    if kind is float and isinstance(value, str) and value in _NON_FINITE:
        return _NON_FINITE[value]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise RecordError(f"{path}: too large for a number".lstrip(": ")) from None
    return _expect(kind, value, path)


def _decode_union(args: tuple[Any, ...], value: JSON, path: str) -> Any:
    first: RecordError | None = None
    for option in args:
        try:
            return _decode(option, value, path)
        except RecordError as error:
            first = first or error
    raise first or RecordError(f"{path}: no type fits {value!r:.60}")


def _decode_record(kind: Any, value: JSON, path: str) -> Any:
    given = _expect(dict, value, path)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    hints = _hints(kind)
    unknown = sorted(set(given) - set(fields))
    if unknown:
        raise RecordError(f"{path}.{unknown[0]}: unknown key".lstrip("."))
    missing = [
        name
        for name, field in fields.items()
        if name not in given and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise RecordError(f"{path}.{missing[0]}: missing".lstrip("."))
    return kind(**{name: _decode(hints[name], item, f"{path}.{name}".lstrip(".")) for name, item in given.items()})


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    """The types of a record's fields; reading them out of text takes longer than the rest of decoding."""
    return typing.get_type_hints(kind)


def _expect(kind: type[Any], value: JSON, path: str) -> Any:
    wrong_bool = isinstance(value, bool) and kind in (int, float)
    if wrong_bool or not isinstance(value, kind):
        name = "null" if kind is type(None) else kind.__name__
        raise RecordError(f"{path}: expected {name}, got {value!r:.60}".lstrip(": "))
    return value
