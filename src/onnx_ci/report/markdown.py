"""The report in markdown: the step summary whole, the pull request comment cut to what GitHub takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from onnx_ci.records.report import Report
from onnx_ci.report import sections
from onnx_ci.report.context import Context
from onnx_ci.report.numbers import count
from onnx_ci.report.rows import Row, rows
from onnx_ci.report.table import LEGEND, table

COMMENT_LIMIT = 65_536
"""Characters in a comment (GitHub answers 422 beyond); counted here in UTF-16 units, which are never fewer."""

SUMMARY_LIMIT = 1 << 20
"""Bytes in a step summary; GitHub drops one that is larger, whole."""

_ALWAYS_SHOWN = 10


def summary(report: Report, context: Context = Context(), limit: int = SUMMARY_LIMIT) -> str:  # noqa: B008 # frozen
    """Renders the whole report for the step summary, in at most `limit` bytes of UTF-8."""
    return _fit(report, context, "", limit, lambda text: len(text.encode("utf-8")))


def comment(
    report: Report,
    context: Context = Context(),  # noqa: B008 # frozen
    limit: int = COMMENT_LIMIT,
    *,
    marker: str = "",
) -> str:
    """Renders the pull request comment, in at most `limit` characters.

    Args:
        report: The merged report.
        context: Which run it is.
        limit: In UTF-16 units.
        marker: The hidden last line by which the comment is found again; never cut.
    """
    return _fit(report, context, marker, limit, lambda text: len(text.encode("utf-16-le")) // 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shown:
    """How many of each part are shown."""

    rows: int
    troubles: int
    details: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Parts:
    head: list[str]
    rows: list[Row]
    table: list[str]
    troubles: list[str]
    details: list[tuple[str, str]]
    foot: list[str]
    url: str

    def text(self, shown: _Shown) -> str:
        listed = self.troubles[: shown.troubles]
        legend = [LEGEND] if any(row.parity or row.latency for row in self.rows[: shown.rows]) else []
        blocks = [
            *self.head,
            "\n".join(self.table[: shown.rows + 2] if shown.rows else []),
            *legend,
            "\n\n".join([f"#### To look at ({len(self.troubles)})", *listed]) if listed else "",
            "\n".join(text for name, text in self.details if name in shown.details),
            self.cut(shown),
            *self.foot,
        ]
        return "\n\n".join(block for block in blocks if block) + "\n"

    def cut(self, shown: _Shown) -> str:
        """Says what is left out and where it is; "" when nothing is."""
        left = [count(len(self.rows) - shown.rows, "row")] if shown.rows < len(self.rows) else []
        hidden = len(self.troubles) - shown.troubles
        left += [count(hidden, "finding")] if hidden else []
        left += [name for name, _ in self.details if name not in shown.details]
        where = f"[the run's summary and artifacts]({self.url})" if self.url else "the report folder (`index.html`)"
        return f"> ✂️ Cut to fit: {', '.join(left)}. The whole is in {where}." if left else ""


def _fit(report: Report, context: Context, marker: str, limit: int, size: Callable[[str], int]) -> str:
    """Cuts until it fits: folded details, then findings, then rows from the healthy end."""
    listed = rows(report)
    parts = _Parts(
        head=[sections.headline(report, listed), sections.facts(report, listed, context)],
        rows=listed,
        table=table(listed),
        troubles=sections.troubles(report, context),
        details=sections.details(report, context),
        foot=[sections.footer(context), marker],
        url=context.url,
    )

    def fits(shown: _Shown) -> bool:
        return size(parts.text(shown)) <= limit

    whole = frozenset(name for name, _ in parts.details)
    shown = _Shown(rows=len(parts.rows), troubles=len(parts.troubles), details=whole)
    if fits(shown):
        return parts.text(shown)
    shown = replace(shown, details=frozenset())
    if fits(shown):
        for name, _ in parts.details:
            wider = replace(shown, details=shown.details | {name})
            shown = wider if fits(wider) else shown
        return parts.text(shown)
    few = min(_ALWAYS_SHOWN, shown.troubles)
    troubles = few + _most(shown.troubles - few, lambda many: fits(replace(shown, troubles=few + many)))
    shown = replace(shown, troubles=troubles)
    shown = replace(shown, rows=_most(shown.rows, lambda many: fits(replace(shown, rows=many))))
    shown = replace(shown, troubles=_most(shown.troubles, lambda many: fits(replace(shown, troubles=many))))
    return parts.text(shown)


def _most(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number from 0 to `most` that fits, by halving; 0 where none does."""
    low, high = 0, most
    if fits(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
