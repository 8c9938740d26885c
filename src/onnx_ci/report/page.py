"""The whole report as one page: every finding and figure, no script, nothing loaded from anywhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence

from onnx_ci import __version__
from onnx_ci.records.report import Leg, Report, VersionChange
from onnx_ci.records.result import Finding, Memory, OutputFigures, Result, Timing, causes, label
from onnx_ci.report import why
from onnx_ci.report.context import Context
from onnx_ci.report.costs import PEAK_LEGEND, peak_case
from onnx_ci.report.escape import hypertext, line, path
from onnx_ci.report.history import Point, Series, series, sparkline
from onnx_ci.report.numbers import NBSP, NONE, figure, milliseconds, size, times
from onnx_ci.report.promises import Promise, promises
from onnx_ci.report.rows import ICONS, Row, golden_word, rows, verdict
from onnx_ci.report.sections import conclusion
from onnx_ci.report.table import HEADERS, latency, parity, place
from onnx_ci.report.troubles import NO_RESULT, Trouble, troubles

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
.scroll { overflow-x: auto; margin: .5rem 0 1rem; } table { border-collapse: collapse; min-width: 100%; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; white-space: nowrap; } td { min-width: 4rem; } td:first-child { min-width: 0; }
td:last-child { overflow-wrap: break-word; } h1, p, li { overflow-wrap: anywhere; } .trouble { margin: 0 0 1rem; }
 small, .hint, .at { opacity: .75; } .hint { font-style: italic; }
code, .at { font-family: ui-monospace, monospace; font-size: .9em; }
section { border-top: 2px solid var(--line); margin-top: 2rem; } summary { cursor: pointer; }
pre { background: var(--soft); padding: .6rem; overflow: auto; max-height: 24rem; }
"""
_ERRORS = ["PyTorch", "Target", "Limit", "Max abs", "at", "Max rel", "ULP", "Cosine", "Beyond", "Same argmax"]
_FIGURES = ["Case", "Output", "", "Judged by", *_ERRORS, "File in float64", "Limit"]
_MOST_CAUSES = 20
_CHANGES = ["Package", "Base", "Here"]
_PAST = ["Date", "Commit", "p50", "p90", "p99", "Against the base"]
_TIMES = ["Runner", "Case", "p50", "p90", "p99", "Least", "Most", "Samples", "Threads", "Transfers"]
_PEAKS = ["Runner", "Case", "Host", "Device", "Provider", "Threads", "Runs"]


def render(report: Report, context: Context, past: Sequence[Point] = ()) -> str:
    """Renders a self-contained HTML document.

    Args:
        report: The merged report.
        context: Which run it is.
        past: Latencies of earlier runs and this one, oldest first.
    """
    listed = rows(report)
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    run = f' · <a href="{hypertext(context.url)}">run</a>' if context.url else ""
    commit = f" · commit <code>{hypertext(context.run.sha[:10])}</code>" if context.run.sha else ""
    base = f" · base <code>{hypertext(report.base_commit[:10])}</code>" if report.base_commit else ""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">',
            f"<title>onnx-ci</title><style>{STYLE}</style></head><body>",
            f"<h1>{ICONS[report.status]} onnx-ci: {hypertext(conclusion(report, listed))}</h1>",
            f"<p>onnx-ci {__version__}{commit}{base}{run}</p>",
            _troubles(report),
            _list("Notes", report.notes),
            _fold("Versions that changed against the base", _table(_CHANGES, map(_change, report.versions))),
            _table(HEADERS, (_row(row) for row in listed)),
            *(_result(result, series(past, result)) for result in report.results),
            "</body></html>\n",
        ]
    )


def _change(one: VersionChange) -> list[str]:
    return [hypertext(one.package), hypertext(one.base or NONE), hypertext(one.head or NONE)]


def _row(row: Row) -> list[str]:
    error, remark = parity(row.parity)
    runtime, eager = latency(row.latency)
    golden = row.golden
    return [
        f"<code>{hypertext(row.label)}</code>",
        hypertext(row.target),
        f"{ICONS[row.state]} {hypertext(verdict(row))}"
        + ("" if row.required or not row.troubled else "<br><small>not required</small>"),
        f"{hypertext(error)}<br><small>{hypertext(' '.join(filter(None, (place(row.parity), remark))))}</small>",
        f"{ICONS[golden.status]} {hypertext(golden_word(golden))}" if golden else NONE,
        f"{hypertext(runtime)}<br><small>{hypertext(eager)}</small>",
        f"<code>{hypertext(row.artifact or NONE, limit=13)}</code>",
    ]


def _result(result: Result, past: Series | None) -> str:
    environment = result.environment
    machine = (environment.cpu, f"{environment.cores} cores", environment.gpu, result.provider, environment.platform)
    packages = sorted({"python": environment.python, **environment.packages}.items())
    artifact = f"<br>artifact <code>{hypertext(result.artifact)}</code>" if result.artifact else ""
    costs = [
        [hypertext(stage), hypertext(f"{figure(cost.seconds)} s"), size(cost.peak_bytes)]
        for stage, cost in result.stages.items()
    ]
    name = hypertext(f"{label(result.model, result.variant)} on {result.target}")
    return "\n".join(
        [
            f"<section><h2>{ICONS[result.status]} {name}</h2>",
            f"<p>{hypertext(' · '.join(part for part in machine if part))}{artifact}</p>",
            _table(["", "Rule", "Subject", "Finding"], (_finding(finding) for finding in result.findings)),
            _fold("Inputs", _table(["Input", "Type and shape", "Sizes"], map(_promise, promises([result])))),
            _fold("Parity", _table(_FIGURES, (_figures(one) for one in result.parity))),
            _fold("Latency", _table(_TIMES, (_timing(one) for one in result.latency))),
            _fold("Memory peak", _peaks(result.memory)),
            _fold("Latency over time", _past(past) if past else ""),
            _fold("Time and memory", _table(["Stage", "Time", "Peak memory"], costs)),
            _fold("Versions", _table(["Package", "Version"], ([hypertext(a), hypertext(b)] for a, b in packages))),
            _fold("Log", f"<pre>{hypertext(result.log, lines=True, limit=200_000)}</pre>" if result.log else ""),
            "</section>",
        ]
    )


def _troubles(report: Report) -> str:
    """What broke or could not be told, before any table; nothing where nothing did."""
    said = [_trouble(one) for one in troubles(report)]
    items = "\n".join(f'<div class="trouble">{one}</div>' for one in said)
    return f"<h2>To look at ({len(said)})</h2>\n{items}" if said else ""


def _trouble(one: Trouble) -> str:
    if isinstance(one, str):
        return f"{ICONS['error']} {hypertext(one)}"
    if isinstance(one, Leg):
        name = hypertext(f"{label(one.model, one.variant)} on {one.target}")
        return f'{ICONS["missing"]} {name} has no result<br><span class="hint">{NO_RESULT}</span>'
    result, finding = one
    mark, rule, subject, said = _finding(finding)
    name = hypertext(f"{label(result.model, result.variant)} on {result.target}")
    parts = [f"{mark} {rule}", name, *([subject] if subject else []), *([] if result.required else ["not required"])]
    return " · ".join(parts) + f"<br>{said}"


def _finding(finding: Finding) -> list[str]:
    file, number = path(finding.file), line(finding.line)
    place = f"{file}:{number}" if file and number else file
    said = [hypertext(finding.message)]
    said += [f'<span class="hint">{hypertext(finding.hint)}</span>'] if finding.hint else []
    said += [f'<span class="at">{hypertext(place)}</span>'] if place else []
    chain = causes(finding)[:_MOST_CAUSES]
    if len(chain) > 1:  # a single one is in the message
        items = "".join(f"<li><code>{hypertext(one)}</code></li>" for one in chain)
        said += [f"<details><summary>Exceptions, the last one the cause</summary><ol>{items}</ol></details>"]
    if told := why.why(finding):
        tables = _table(why.OPERATORS, (map(hypertext, cells) for cells in why.operators(told)))
        tables += _table(why.HOTTEST, (map(hypertext, cells) for cells in why.hottest(told)))
        said += [_fold("Why it takes longer than the base", f"<p>{hypertext(why.overhead(told))}</p>{tables}")]
    mark = f'<span title="{hypertext(finding.status)}">{ICONS[finding.status]}</span>'
    return [mark, f"<code>{hypertext(finding.rule)}</code>", hypertext(finding.subject), "<br>".join(said)]


def _promise(one: Promise) -> list[str]:
    return [f"<code>{hypertext(one.name)}</code>", hypertext(one.form) or NONE, hypertext(one.sizes) or NONE]


def _figures(one: OutputFigures) -> list[str]:
    cells = [one.case, one.output]
    at = hypertext(str(one.max_abs_at)) if one.max_abs_at else NONE
    norms, more = [one.e_torch, one.e_runtime, one.limit, one.max_abs], [one.max_rel, one.ulp, one.cosine]
    shares = [NONE if share is None else f"{100 * share:.3g}{NBSP}%" for share in (one.beyond, one.argmax_agreement)]
    notes = [f"with {one.options}" if one.options else "", one.note]
    note = f"<br><small>{hypertext('; '.join(filter(None, notes)))}</small>" if any(notes) else ""
    return [
        *map(hypertext, cells),
        ICONS[one.status],
        hypertext(one.against) + note,
        *map(figure, norms),
        at,
        *map(figure, more),
        *shares,
        *map(figure, [one.e_function, one.function_limit]),
    ]


def _timing(one: Timing) -> list[str]:
    samples = [*one.samples_ms] or [float("nan")]
    spent = [one.p50_ms, one.p90_ms, one.p99_ms, min(samples), max(samples)]
    return [
        hypertext(one.runner),
        hypertext(one.case),
        *map(milliseconds, spent),
        str(len(one.samples_ms)),
        hypertext(str(one.threads)),
        one.transfers,
    ]


def _peaks(found: Sequence[Memory]) -> str:
    lines = [
        [
            hypertext(one.runner),
            hypertext(peak_case(one)),
            _peak(one.host_bytes, one.host_note),
            _peak(one.device_bytes, one.device_note),
            hypertext(one.provider),
            hypertext(str(one.threads)),
            hypertext(str(one.runs)),
        ]
        for one in found
    ]
    return f"<p>{PEAK_LEGEND}</p>{_table(_PEAKS, lines)}" if lines else ""


def _peak(found: int | None, note: str) -> str:
    return size(found) + (f"<br><small>{hypertext(note)}</small>" if note else "")


def _past(found: Series) -> str:
    """The series that this run stands in; what was measured under other conditions is in none of its lines."""
    lines = [
        [
            hypertext(one.date, limit=40),
            f"<code>{hypertext(one.commit[:10] or NONE)}</code>",
            *map(milliseconds, (one.p50_ms, one.p90_ms, one.p99_ms)),
            times(one.ratio) if one.ratio is not None else NONE,
        ]
        for one in reversed(found.points)
    ]
    since = f"<p>A new series, since other conditions began: {hypertext('; '.join(found.since))}.</p>"
    bars = f"<p><code>{sparkline(found.points)}</code> p50, oldest first</p>"
    return (since if found.since else "") + bars + _table(_PAST, lines)


def _table(headers: Sequence[str], lines: Iterable[Iterable[str]]) -> str:
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n" for cells in lines)
    head = "".join(f"<th>{header}</th>" for header in headers)
    if not body:
        return ""
    # A block around it scrolls: a table that is a block itself is squeezed to the window, and its cells with it.
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>'


def _list(title: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{hypertext(line)}</li>" for line in lines)
    return f"<h2>{title}</h2><ul>{items}</ul>" if items else ""


def _fold(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>{body}</details>" if body else ""
