"""What a worker answered, or failed to answer, as a result."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from onnx_ci import __version__
from onnx_ci.errors import OnnxCiError
from onnx_ci.records.environment import Environment
from onnx_ci.records.messages import Event, Request, Verb
from onnx_ci.records.model import LockSpec, ModelSpec
from onnx_ci.records.result import SCHEMA_VERSION, Finding, Result, finding, label
from onnx_ci.worker.launch import Workers

T = TypeVar("T")
_RESULT = TypeAdapter(Result)
_ENVIRONMENT = TypeAdapter(Environment)


@dataclass(frozen=True, kw_only=True, slots=True)
class Leg:
    """One piece of work: a model's export, or its judging on a target."""

    model: ModelSpec
    target: str
    verb: Verb
    required: bool
    lock: LockSpec

    @property
    def name(self) -> str:
        """The stem of its result's and its log's file name."""
        return f"{label(self.model.name, self.model.variant)}.{self.target}"


def said(event: Event) -> str:
    """Why there is no answer, in words."""
    return f"{event.where}: {event.message}" if event.where else event.message


def read(kind: TypeAdapter[T], event: Event) -> T | str:
    """The answer that an event holds; why there is none of this kind, in words, where there is none."""
    if event.kind != "result":
        return said(event)
    try:
        return kind.validate_python(event.payload)
    except ValidationError as error:
        return f"its answer can't be read: {_brief(error)}"


def result_of(event: Event, leg: Leg, workers: Workers, log: Path, stages: list[str]) -> Result:
    """The worker's own result once it is checked, or one that says why there is none."""
    if event.kind == "result":
        result = read(_RESULT, event)
        if not isinstance(result, str):
            return replace(
                result,
                model=leg.model.name,
                variant=leg.model.variant,
                target=leg.target,
                required=leg.required,
                log=log.name,
            )
        event = replace(event, kind="died", message=result)
    return Result(
        schema_version=SCHEMA_VERSION,
        model=leg.model.name,
        variant=leg.model.variant,
        target=leg.target,
        required=leg.required,
        status="error",
        artifact=None,
        environment=_environment_or_none(workers, log),
        findings=[why_no_result(event, leg, log, stages)],
        log=log.name,
    )


def _environment_or_none(workers: Workers, log: Path) -> Environment:
    try:
        return environment_of(workers, log.with_suffix(".interpreter.log"))
    except OnnxCiError:
        return Environment(onnx_ci=__version__, python="", platform="", cpu="", cores=0)


def why_no_result(event: Event, leg: Leg, log: Path, stages: list[str]) -> Finding:
    """What is said of a worker that gave no result."""
    where = f" in stage {stages[-1]}" if stages else ""
    printed = _last_lines(log)
    data: dict[str, object] = {"log": printed, "stage": stages[-1] if stages else ""}
    place = {"file": leg.model.declared_in or None, "line": leg.model.declared_at}
    if event.kind == "died":
        message = f"the worker gave no result{where}: {event.message}"
        hint = f"Its log ends with: {printed.splitlines()[-1]}" if printed else "It printed nothing."
        return finding("environment.worker", "error", "", message, hint=hint, data=data, **place)
    if event.internal:
        message = f"a fault in onnx-ci{where}: {event.message}"
        return finding(
            "environment.internal", "error", "", message, hint="Please report it with the log.", data=data, **place
        )
    if event.stage == "package":
        return finding("environment.missing", "error", event.where, event.message, hint=event.hint, data=data, **place)
    if event.stage == "machine":
        return finding("environment.worker", "error", "", f"{said(event)}{where}", hint=event.hint, data=data, **place)
    rule = "export.entrypoint" if leg.verb == "export" else "structure.unreadable"
    file, line = _split_place(event.where)
    message = event.message if file else said(event)
    place = {"file": file, "line": line} if file else place
    return finding(rule, "error", "", message, hint=event.hint, data=data, **place)


def _split_place(where: str) -> tuple[str | None, int | None]:
    file, colon, line = where.rpartition(":")
    return (file, int(line)) if colon and line.isdigit() and int(line) > 0 else (None, None)


def _last_lines(log: Path) -> str:
    try:
        with log.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - 4000))
            return stream.read().decode(errors="replace").strip()
    except OSError:
        return ""


def environment_of(workers: Workers, log: Path) -> Environment:
    """What is installed in the user's interpreter, and the machine it runs on."""
    request = Request(id=workers.next_id(), verb="environment", log=str(log), time_limit=60)
    event = workers.perform(request, lambda _: None)
    if event.kind != "result":
        raise OnnxCiError(f"the user's interpreter can't be described: {event.message}", where=event.where)
    return _ENVIRONMENT.validate_python(event.payload)


def _brief(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return str(error)
