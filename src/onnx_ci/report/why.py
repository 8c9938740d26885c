"""Why a file takes longer than the base's: what its finding holds of both profiles, and the versions that differ.

Profiles come from another machine: what is no number of the expected kind is left out whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from onnx_ci.records.report import Report
from onnx_ci.records.result import Finding, Result
from onnx_ci.report import escape
from onnx_ci.report.numbers import NBSP, NONE, milliseconds
from onnx_ci.report.rows import findings

RULE = "latency.regression"
OPERATORS = ["Operator", "Base", "Here"]
HOTTEST = ["Hottest node", "Operator", "Time", "Line"]
_MOST = 8
_Count = Annotated[int, Field(ge=0, le=10_000_000)]
_Microseconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class _Operator(BaseModel):
    op: str
    head: _Count
    base: _Count
    head_us: _Microseconds
    base_us: _Microseconds


class _Node(BaseModel):
    node: str
    op: str
    us: _Microseconds
    file: str | None = None
    line: int | None = None


class _Both(BaseModel):
    head: _Microseconds
    base: _Microseconds


class Why(BaseModel):
    """Two profiles side by side.

    Attributes:
        operators: Counts and microseconds by operator, the most changed first.
        hottest: Nodes of the head, the longest first.
        overhead_us: What operators take that compute nothing.
    """

    operators: list[_Operator]
    hottest: list[_Node] = []
    overhead_us: _Both | None = None


def why(found: Finding) -> Why | None:
    """What a regression's finding says of its cause; None where it says nothing, or nothing that holds together."""
    told: Any = found.data.get("why")
    if found.rule != RULE or told is None:
        return None
    try:
        return Why.model_validate(told)
    except ValidationError:
        return None


def explained(report: Report) -> Iterator[tuple[Result, Why]]:
    """The regressions of a report that have a cause, in the order of its rows."""
    for result, found in findings(report, "fail"):
        if told := why(found):
            yield result, told


def operators(told: Why) -> list[list[str]]:
    """The table of operators, base beside head, as plain text."""
    return [[one.op, _spent(one.base, one.base_us), _spent(one.head, one.head_us)] for one in told.operators[:_MOST]]


def hottest(told: Why) -> list[list[str]]:
    """The table of nodes, each with the line that made it, as plain text."""
    return [[one.node, one.op, milliseconds(one.us / 1e3), _place(one) or NONE] for one in told.hottest[:_MOST]]


def overhead(told: Why) -> str:
    """What moving numbers about takes, in a sentence; "" where it is not known."""
    both = told.overhead_us
    if both is None:
        return ""
    return (
        "Operators that compute nothing (Transpose, Cast, Reshape, …) take "
        f"{milliseconds(both.base / 1e3)} in the base and {milliseconds(both.head / 1e3)} here."
    )


def versions(report: Report) -> str:
    """The versions in which the two exports differ, in a sentence.

    Both files ran in one process under one ONNX Runtime, so that versions can only have changed what was exported.
    """
    changes = [f"{one.package} {one.base or NONE} → {one.head or NONE}" for one in report.versions]
    if not changes:
        return "Both were exported with the same versions, and timed in one process." if report.base else ""
    more = f" and {len(changes) - _MOST} more" if len(changes) > _MOST else ""
    return f"Exported with other versions ({', '.join(changes[:_MOST])}{more}), timed in one process."


def _spent(count: int, microseconds: float) -> str:
    return f"{count}{NBSP}×, {milliseconds(microseconds / 1e3)}" if count else NONE


def _place(one: _Node) -> str:
    file, number = escape.path(one.file), escape.line(one.line)
    return f"{file}:{number}" if file and number else file
