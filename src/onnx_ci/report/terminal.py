"""The parity and latency table for a terminal: the same rows as the comment's."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from onnx_ci.records.report import Report
from onnx_ci.records.result import label
from onnx_ci.report.escape import clean, line, path
from onnx_ci.report.numbers import NONE, plain
from onnx_ci.report.rows import Row, State, findings, golden_word, rows, verdict
from onnx_ci.report.sections import conclusion
from onnx_ci.report.table import HEADERS, latency, parity

_STYLES: dict[State, str] = {
    "pass": "green",
    "warn": "yellow",
    "fail": "red",
    "error": "magenta",
    "skip": "dim",
    "missing": "magenta",
}


def show(report: Report, console: Console) -> None:
    """Prints the table, everything somebody must look at, and the verdict."""
    console.print(render(report))


def render(report: Report) -> RenderableType:
    """The same as a renderable of rich; texts from outside carry no markup and no terminal codes."""
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
        *_troubles(report),
        Text(plain(f"onnx-ci: {conclusion(report, listed)}"), style=f"bold {verdict_style}"),
    )


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


def _troubles(report: Report) -> list[Text]:
    lines = [Text.assemble(("error  ", "magenta"), clean(problem)) for problem in report.problems]
    for result, finding in findings(report, "error", "fail"):
        style = _STYLES[finding.status] if result.required else "yellow"
        where = f"{clean(label(result.model, result.variant))} on {clean(result.target)}"
        lines.append(
            Text.assemble(
                (f"{finding.status:<6} ", style),
                (clean(finding.rule), "bold"),
                f" {where}{' · ' + clean(finding.subject) if finding.subject else ''}",
            )
        )
        lines.append(Text(f"       {plain(clean(finding.message))}"))
        if finding.hint:
            lines.append(Text(f"       {plain(clean(finding.hint))}", style="italic"))
        if file := path(finding.file):
            number = line(finding.line)
            lines.append(Text(f"       {file}:{number}" if number else f"       {file}", style="dim"))
    return [*lines, Text()] if lines else []
