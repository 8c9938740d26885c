"""The report for a terminal: the same rows as the comment's, and every finding that somebody must look at."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from onnx_ci.records.report import Leg, Report
from onnx_ci.records.result import Finding, Result, label
from onnx_ci.report.escape import clean, line, path
from onnx_ci.report.merge import merge
from onnx_ci.report.numbers import NONE, count, plain
from onnx_ci.report.rows import Row, State, findings, golden_word, rows, verdict
from onnx_ci.report.sections import conclusion
from onnx_ci.report.table import HEADERS, latency, parity
from onnx_ci.report.troubles import NO_RESULT, Trouble, troubles

_STYLES: dict[State, str] = {
    "pass": "green",
    "warn": "yellow",
    "fail": "red",
    "error": "magenta",
    "skip": "dim",
    "missing": "magenta",
}
_PLAIN_WIDTH = 160
"""Columns where nothing says how wide it is: wide enough for a row of the table."""
_ALIKE = 3
"""How many warnings of one rule and model are shown; the others are counted."""


def show(what: RenderableType, stdout: TextIO, environment: Mapping[str, str]) -> None:
    """Prints it; on a runner so that no name in it can give a command."""
    token = secrets.token_hex(16) if environment.get("GITHUB_ACTIONS") == "true" else ""
    if token:
        stdout.write(f"::stop-commands::{token}\n")
    Console(file=stdout, width=None if stdout.isatty() else _PLAIN_WIDTH).print(what)
    if token:
        stdout.write(f"::{token}::\n")


def render(report: Report) -> RenderableType:
    """The table, everything somebody must look at, and the verdict; texts from outside carry no markup and no codes."""
    listed = rows(report)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in HEADERS:
        table.add_column(header, overflow="fold")
    for row in listed:
        table.add_row(*_cells(row))
    verdict_style = _STYLES[report.status]
    heading: list[RenderableType] = [table, Text()] if listed else []
    return Group(
        *heading,
        *_listed(report),
        Text(plain(f"onnx-ci: {conclusion(report, listed)}"), style=f"bold {verdict_style}"),
    )


def render_findings(results: Sequence[Result], kept: str) -> RenderableType | None:
    """What a job found that somebody must look at, and how much it is; None where nothing is.

    Args:
        results: Of the legs that it did.
        kept: Where they are whole.
    """
    report = merge(results, None, [])
    statuses = Counter(found.status for one in report.results for found in one.findings)
    parts = [f"{statuses['fail']} broken"] if statuses["fail"] else []
    parts += [f"{statuses['error']} could not be told"] if statuses["error"] else []
    parts += [count(statuses["warn"], "warning")] if statuses["warn"] else []
    return Group(*_listed(report), Text(plain(f"{', '.join(parts)}: all of it in {clean(kept)}"))) if parts else None


def _cells(row: Row) -> list[Text]:
    error, remark = parity(row.parity)
    runtime, eager = latency(row.latency)
    style = _STYLES[row.state] if row.required or not row.troubled else "yellow"
    golden = row.golden
    return [
        Text(clean(row.label, limit=80)),
        Text(clean(row.target, limit=40)),
        Text(clean(verdict(row), limit=200) + ("" if row.required else " (not required)"), style=style),
        Text(plain(f"{error} {remark}".strip())),
        Text(clean(golden_word(golden), limit=40) or "pass", style=_STYLES[golden.status]) if golden else Text(NONE),
        Text(plain(f"{runtime} ({eager})" if eager else runtime)),
        Text(clean(row.artifact or NONE, limit=200)[:7]),
    ]


def _listed(report: Report) -> list[Text]:
    lines = [line for one in troubles(report) for line in _trouble(one)] + _warnings(report)
    return [*lines, Text()] if lines else []


def _trouble(one: Trouble) -> list[Text]:
    if isinstance(one, str):
        return [Text.assemble(("error  ", "magenta"), clean(one))]
    if isinstance(one, Leg):
        name = f"{clean(label(one.model, one.variant))} on {clean(one.target)}"
        return [Text.assemble(("error  ", "magenta"), f"{name} has no result"), _below(NO_RESULT, "italic")]
    return _finding(*one)


def _warnings(report: Report) -> list[Text]:
    """The first of each rule and model, so that what is said of every case does not hide what is said once."""
    lines: list[Text] = []
    told: Counter[tuple[str, str]] = Counter()
    for result, finding in findings(report, "warn"):
        kind = clean(finding.rule), clean(label(result.model, result.variant))
        told[kind] += 1
        lines += _finding(result, finding) if told[kind] <= _ALIKE else []
    more = [(kind, times - _ALIKE) for kind, times in told.items() if times > _ALIKE]
    return [*lines, *(_below(f"and {times} more of {rule} on {name}", "dim") for (rule, name), times in more)]


def _finding(result: Result, finding: Finding) -> list[Text]:
    style = _STYLES[finding.status] if result.required else "yellow"
    where = f"{clean(label(result.model, result.variant))} on {clean(result.target)}"
    subject = f" · {clean(finding.subject)}" if finding.subject else ""
    lines = [Text.assemble((f"{finding.status:<6} ", style), (clean(finding.rule), "bold"), f" {where}{subject}")]
    lines.append(_below(finding.message))
    lines += [_below(finding.hint, "italic")] if finding.hint else []
    if file := path(finding.file):
        number = line(finding.line)
        lines.append(_below(f"{file}:{number}" if number else file, "dim"))
    return lines


def _below(text: str, style: str = "") -> Text:
    return Text(f"       {plain(clean(text))}", style=style)
