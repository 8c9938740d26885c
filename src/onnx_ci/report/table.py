"""The parity and latency table in markdown, a row each leg, seven columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tabulate import tabulate

from onnx_ci.records.result import OutputFigures
from onnx_ci.report.escape import code, prose
from onnx_ci.report.numbers import NBSP, NONE, figure, milliseconds, times
from onnx_ci.report.rows import ICONS, Latency, Row, golden_word, other_function, verdict

HEADERS = ("Model", "Target", "Verdict", "Parity", "Golden", "Latency", "Artifact")
LEGEND = (
    "<sub>Parity: relative L2 error against PyTorch in float64, and what it may be. "
    "Latency, as medians: an export's row has PyTorch eager and, in interleaved pairs with it, ONNX Runtime, both on "
    "one CPU thread; a target's has ONNX Runtime with the target's settings, × the base's in pairs (? where the "
    "interval spans the limit), and PyTorch where it ran on the same machine under the same conditions.</sub>"
)

_BROKEN = {
    "parity.nonfinite": "NaN or infinity",
    "parity.shape": "another shape",
    "parity.dtype": "another dtype",
    "parity.structure": "another kind",
}
"""By the layer that a row's note starts with, what is wrong with it in a word."""


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table: two of heading, then one for each row. A model's name and digest stand in its first."""
    cells = []
    above: Row | None = None
    for row in rows:
        model, *middle, artifact = _cells(row)
        same = above is not None and above.label == row.label
        kept = same and above is not None and row.artifact in (None, above.artifact)
        cells.append(["" if same else model, *middle, "" if kept else artifact])
        above = row
    return grid(HEADERS, cells).splitlines() if rows else []


def grid(headers: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A pipe table of cells that are markdown already; without padding, which a comment has no room for."""
    padded = tabulate(cells, headers, tablefmt="pipe", disable_numparse=True, colalign=["left"] * len(headers))
    return re.sub(r" {2,}(?=\|)", " ", re.sub(r":-+", ":--", padded))


def parity(figures: OutputFigures | None) -> tuple[str, str]:
    """The worst figures as plain text: the error with its limit, and what was measured where there is no oracle."""
    if figures is None:
        return NONE, ""
    if other_function(figures):
        return f"{figure(figures.e_function)}{NBSP}>{NBSP}{figure(figures.function_limit)}", "another function: float64"
    if figures.against == "exact":
        broken = _BROKEN.get(figures.note.partition(":")[0], "differs")
        return ("exact" if figures.status in ("pass", "skip") else broken), ""
    kept = "≤" if figures.status in ("pass", "warn", "skip") else ">"
    if figures.limit is not None and figures.e_runtime is not None:
        return f"{figure(figures.e_runtime)}{NBSP}{kept}{NBSP}{figure(figures.limit)}", ""
    return f"{figure(figures.max_abs)}{NBSP}abs", "no oracle" if figures.against == "eager" else ""


def place(figures: OutputFigures | None) -> str:
    """Where the worst figures are: the output, its element that is furthest off, and the case."""
    if figures is None:
        return ""
    at = f"[{', '.join(map(str, figures.max_abs_at))}]" if figures.max_abs_at else ""
    options = f" · with {figures.options}" if figures.options else ""
    return f"{figures.output}{at} · {figures.case}{options}"


def latency(found: Latency | None) -> tuple[str, str]:
    """What was timed, as plain text: a target's median and what stands beside it; an export's of PyTorch, in pairs."""
    if found is None:
        return NONE, ""
    beside = f"PyTorch{NBSP}{milliseconds(found.eager)}" if found.eager is not None else ""
    if found.paired and found.eager and found.runtime:
        said = f"ONNX{NBSP}Runtime {times(found.eager / found.runtime)}{NBSP}as{NBSP}fast"
        if found.compiled:
            said += f", {times(found.compiled / found.runtime)}{NBSP}as{NBSP}fast as torch.compile"
        return beside, said
    base = f"{times(found.base)}{NBSP}the{NBSP}base" if found.base is not None else ""
    if base and not found.settled:
        base += "?"
    return milliseconds(found.runtime), ", ".join(part for part in (base, beside) if part)


def _cells(row: Row) -> list[str]:
    error, remark = parity(row.parity)
    where = place(row.parity)
    runtime, eager = latency(row.latency)
    return [
        code(row.label, limit=80) + (f" {_small(row.mark)}" if row.mark else ""),
        prose(row.target, limit=40),
        f"{ICONS[row.state]}{NBSP}{prose(verdict(row), limit=200)}" + _below(_aside(row)),
        error + _below(prose(where, limit=80), remark),
        _golden(row),
        runtime + _below(eager),
        code(row.artifact[:7]) if row.artifact else NONE,
    ]


def _aside(row: Row) -> str:
    return "not required" if not row.required and row.state in ("fail", "error", "missing") else ""


def _golden(row: Row) -> str:
    if row.golden is None:
        return NONE
    word = golden_word(row.golden)
    return ICONS[row.golden.status] + (f"{NBSP}{prose(word, limit=40)}" if word else "")


def _small(*parts: str) -> str:
    return f"<sub>{', '.join(part for part in parts if part)}</sub>"


def _below(*parts: str) -> str:
    return f"<br>{_small(*parts)}" if any(parts) else ""
