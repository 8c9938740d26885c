"""Checks a config against the schema, and says of every fault what it is and what was likely meant."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from onnx_ci.config.problems import Path, Problem, did_you_mean, show, show_path
from onnx_ci.config.schema import LATER, Root, Table

NOT_BUILT = "this part of onnx-ci is not built yet; remove the key"
_SYNONYMS = {
    "opset_version": "opset", "target_opset": "opset", "ir_version": "max_ir", "output_names": "outputs",
    "timeout": "time_limit", "memory": "memory_limit", "device": "provider", "execution_provider": "provider",
    "provider_options": "options", "num_threads": "threads", "intra_op_num_threads": "threads", "step": "multiple_of",
}  # fmt: skip
_SAY_IT_SO = {
    "dynamic_axes": 'name the dims in inputs.x.shape, such as ["batch", 3]',
    "dynamic_shapes": 'name the dims in inputs.x.shape, such as ["batch", 3]',
    "tool": "in onnx-ci.toml the tables stand at the top, without tool.onnx-ci",
}
_KINDS = {
    "int_type": "an integer", "float_type": "a number", "string_type": "text", "bool_type": "true or false",
    "list_type": "an array", "dict_type": "a table", "model_type": "a table", "model_attributes_type": "a table",
}  # fmt: skip


def check(data: dict[str, Any]) -> tuple[Root | None, list[Problem], set[Path]]:
    """Validates the config.

    Returns:
        What of it is sound (None when nothing is); all problems; and the paths that were left out, or filled in where
        a table is nothing without them, so that the rest of it is still looked at.
    """
    data, found = _without_unbuilt(data, Root, ())
    cut: set[Path] = set()
    filled: set[Path] = set()
    told = False
    while True:
        before = data
        try:
            return Root.model_validate(data), found, cut
        except ValidationError as error:
            faults = error.errors(include_url=False)
        if not told:  # the first round tells all; what comes up once faults are left out is their consequence
            found, told = found + _explain(faults), True
        for fault in faults:
            path = _path(fault)
            if fault["type"] == "missing" and path[-1] in _FILLED_IN and path not in filled:
                filled.add(path)
                data = _with(data, path, _FILLED_IN[str(path[-1])])
            else:
                path = _faulty_part(fault)
                if not path:
                    return None, found, cut
                data = _without(data, path)
                if fault["type"] == "extra_forbidden" and isinstance(fault["input"], dict):
                    path = (*path[:-1], "inputs")  # it may be the inputs misspelled, which the rest refers to
            cut.add(path)
        if data is before:
            return None, found, cut


def fields_at(path: Path) -> dict[str, Any]:
    """The keys that the table at a path may have, with pydantic's description of each; empty where any may be."""
    kind: Any = Root
    for part in path:
        tables = _tables(kind)
        if tables and isinstance(part, str) and part in tables[0].model_fields:
            kind = tables[0].model_fields[part].annotation
        else:
            kind = _item(kind)
    tables = _tables(kind)
    return dict(tables[0].model_fields) if tables else {}


def _explain(faults: list[Any]) -> list[Problem]:
    unknown = [fault for fault in faults if fault["type"] == "extra_forbidden"]
    problems = [_unknown_key(_path(fault), fault["input"]) for fault in unknown]
    hints = {(*problem.path[:-1], problem.hint) for problem in problems}
    for fault in faults:
        path = _path(fault)
        # A misspelled key is one fault, not two.
        if fault["type"] == "missing" and (*path[:-1], f"did you mean {path[-1]}?") in hints:
            continue
        if fault["type"] != "extra_forbidden":
            message, hint = _message(fault)
            problems.append(Problem(path=path, message=message, hint=hint))
    return problems


def _unknown_key(path: Path, value: Any) -> Problem:
    key, known = str(path[-1]), fields_at(path[:-1])
    meant = _SYNONYMS.get(key, key)
    place = _place_of(meant, path[:-1])
    if place:
        hint = f"did you mean {show_path(place)}?"
    elif isinstance(value, dict) and "dtype" in known:
        hint = f'quote a path: inputs."{path[-2]}.{key}"'
    else:
        hint = _SAY_IT_SO.get(key) or did_you_mean(key, known) or f"known are: {', '.join(known)}"
    return Problem(path=path, message="unknown key", hint=hint)


def _place_of(key: str, table: Path) -> Path:
    """Where a key that is unknown in a table does belong: there under this name, one table down, or further up."""
    known = fields_at(table)
    if key in known:
        return (key,)
    for name, field in known.items():
        if any(key in inner.model_fields for inner in _tables(field.annotation)):
            return (*table, name, key)
        if any(key in inner.model_fields for inner in _tables(_item(field.annotation))):
            return (*table, name, "NAME", key)
    return next(((*table[:end], key) for end in range(len(table) - 1, -1, -1) if key in fields_at(table[:end])), ())


def _message(fault: Any) -> tuple[str, str]:
    kind, value, ctx = fault["type"], fault["input"], fault.get("ctx", {})
    if kind == "onnx_ci":
        return ctx["message"], ctx["hint"]
    if kind == "missing":
        return "missing", _MISSING.get(str(fault["loc"][-1]), "")
    if kind == "literal_error":
        options = [word for word in ctx["expected"].split("'") if word and word not in (", ", " or ")]
        near = did_you_mean(value, options) if isinstance(value, str) else ""
        return f"expected {' or '.join(map(show, options))}, got {show(value)}", near
    if kind in _KINDS:
        return f"expected {_KINDS[kind]}, got {show(value)}", _hint(kind, value)
    if kind in ("greater_than_equal", "less_than_equal"):
        side, limit = ("at least", ctx.get("ge")) if kind.startswith("g") else ("at most", ctx.get("le"))
        return f"expected {side} {limit}, got {show(value)}", ""
    if kind == "finite_number":
        return f"expected a finite number, got {show(value)}", ""
    if kind == "too_short":
        return "is empty", "remove the key, or list at least one"
    return f"{fault['msg'][:1].lower()}{fault['msg'][1:]}, got {show(value)}", ""


_MISSING = {
    "models": 'add a table [models.NAME] with an entrypoint, or run "onnx-ci init"',
    "entrypoint": 'entrypoint = "models/classifier.py:build"',
    "provider": 'provider = "CPUExecutionProvider"',
    "reason": "a manual tolerance needs a reason: it is shown in every report",
}


def _hint(kind: str, value: Any) -> str:
    if isinstance(value, str):
        if kind in ("int_type", "float_type", "bool_type") and _reads_as(value):
            return "remove the quotes"
        if kind == "list_type":
            return f"write it as an array: [{show(value)}]"
    if kind == "int_type" and isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"write it as {int(value)}"
    if kind == "string_type" and isinstance(value, (int, float)):
        return f'write it in quotes: "{show(value)}"'
    return ""


def _reads_as(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text in ("true", "false")
    return True


def _path(fault: Any) -> Path:
    return tuple(part for part in fault["loc"] if part != "[key]")


def _without_unbuilt(data: Any, kind: Any, path: Path) -> tuple[Any, list[Problem]]:
    """Takes out the keys whose part is not built, wherever the schema has them."""
    tables, found = _tables(kind), []
    if not isinstance(data, dict):
        return data, []
    kept = {}
    for key, value in data.items():
        field = tables[0].model_fields.get(key) if tables else None
        if field and field.json_schema_extra == LATER:
            found.append(Problem(path=(*path, key), message=NOT_BUILT))
            continue
        inner = field.annotation if field else (None if tables else _item(kind))
        kept[key], more = _without_unbuilt(value, inner, (*path, key))
        found += more
    return kept, found


def _faulty_part(fault: Any) -> Path:
    """What to leave out so that the rest is sound: the key, the array around an item, the table that lacks a key."""
    path = _path(fault)
    if fault["type"] == "missing":
        path = path[:-1]
    first_index = next((at for at, part in enumerate(path) if isinstance(part, int)), len(path))
    return path[:first_index]


_FILLED_IN: dict[str, Any] = {"entrypoint": "unknown", "reason": "unknown", "rtol": 0.0, "atol": 0.0}
"""What stands for a required key that is missing; no config with a fault is ever used."""


def _with(data: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    return {**data, path[0]: _with(data.get(path[0]), path[1:], value)} if isinstance(data, dict) else data


def _without(data: Any, path: Path) -> Any:
    if not isinstance(data, dict) or path[0] not in data:
        return data
    if len(path) == 1:
        return {key: value for key, value in data.items() if key != path[0]}
    return {**data, path[0]: _without(data[path[0]], path[1:])}


def _tables(kind: Any) -> list[type[Table]]:
    return [option for option in _options(kind) if isinstance(option, type) and issubclass(option, Table)]


def _item(kind: Any) -> Any:
    for option in _options(kind):
        if typing.get_origin(option) in (dict, list):
            return typing.get_args(option)[-1]
    return None


def _options(kind: Any) -> Iterator[Any]:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        for option in typing.get_args(kind):
            yield from _options(option)
    elif typing.get_origin(kind) is typing.Annotated:
        yield from _options(typing.get_args(kind)[0])
    else:
        yield kind
