"""The parts of a report in markdown: headline, findings, and the details that fold away. All pure, each a string."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from onnx_ci import __version__
from onnx_ci.records.environment import Environment
from onnx_ci.records.report import Leg, Report
from onnx_ci.records.result import EXPORT_TARGET, STAGES, Finding, Result, label
from onnx_ci.report import costs, escape, why
from onnx_ci.report.context import Context
from onnx_ci.report.contract_change import KINDS, Kind
from onnx_ci.report.contract_diff import changes_of
from onnx_ci.report.escape import code, prose
from onnx_ci.report.numbers import NBSP, NONE, count
from onnx_ci.report.promises import promises
from onnx_ci.report.rows import ICONS, Row, findings
from onnx_ci.report.table import grid
from onnx_ci.report.troubles import NO_RESULT, Trouble
from onnx_ci.report.troubles import troubles as listed

SHOWN_PACKAGES = re.compile(r"python|torch|onnx|onnx-ir|onnxscript|onnxruntime(-[a-z0-9-]+)?|numpy")
_RULE = re.compile(rf"(?:{'|'.join(STAGES)})\.[a-z0-9-]{{1,60}}")


def headline(report: Report, rows: Sequence[Row]) -> str:
    """One sentence that says how it ended."""
    return f"### {ICONS[report.status]} onnx-ci: {conclusion(report, rows)}"


def conclusion(report: Report, rows: Sequence[Row]) -> str:
    """The headline without its mark, in plain text."""
    models = {row.label for row in rows}
    broken = {row.label for row in rows if row.required and row.state == "fail"}
    unknown = {row.label for row in rows if row.required and row.state in ("error", "missing")}
    whole = f"{len(broken)} of {count(len(models), 'model')}" if len(models) > 1 else "the model"
    if report.status == "error":
        told = f"for {len(unknown)} of {count(len(models), 'model')}" if unknown and len(models) > 1 else ""
        also = f"; {len(broken)} broke a promise" if broken else ""
        return f"could not tell {told}".strip() + also
    if report.status == "fail":
        return f"{whole} broke a promise"
    if not models:
        return "no model was touched"
    held = f"all {count(len(models), 'model')} pass" if len(models) > 1 else "the model passes"
    if any(row.state in ("fail", "error", "missing") for row in rows):
        return f"{held} on all required targets"
    if any(row.why for row in rows):
        return f"{held} on all targets that ran"
    return held + (", with warnings" if report.status == "warn" else "")


def facts(report: Report, rows: Sequence[Row], context: Context) -> str:
    """The line below the headline: counts, the commit, and where the whole is."""
    broken = sum(row.state == "fail" for row in rows)
    unknown = sum(row.state == "error" for row in rows)
    absent = sum(row.state == "missing" for row in rows)
    warnings = sum(row.warnings for row in rows)
    parts = [count(len(report.results), "result")]
    parts += [f"{broken} broken"] if broken else []
    parts += [f"{unknown} could not be told"] if unknown else []
    parts += [f"{absent} missing"] if absent else []
    parts += [count(warnings, "warning")] if warnings else []
    parts += [f"commit {code(context.run.sha[:10])}"] if context.run.sha else []
    parts += [f"base {code(report.base_commit[:10])}"] if report.base_commit else []
    parts += [f"[the whole report]({context.url})"] if context.url else []
    return " · ".join(parts)


def troubles(report: Report, context: Context) -> list[str]:
    """Everything somebody must look at, a paragraph each, in the order of `troubles`."""
    return [_trouble(one, context) for one in listed(report)]


def details(report: Report, context: Context) -> list[tuple[str, str]]:
    """The sections that fold away, as (name, markdown), the most useful first; empty ones are left out."""
    made: list[tuple[str, str]] = [
        ("notes", _fold("Notes", [f"- {prose(note, limit=600)}" for note in report.notes])),
        ("contract changes", _contracts(report)),
        ("versions", _versions(report)),
        ("why it takes longer", _slower(report)),
        ("warnings", _listed("Warnings", report, context, "warn")),
        ("contract", _accepted(report)),
        ("untried sizes", _untried(report)),
        ("latency", _fold("Latency by case", costs.latency(report))),
        ("memory", _fold("Memory peak", costs.memory(report))),
        ("parity notes", _parity_notes(report)),
        ("conditions", _conditions(report)),
        ("skipped", _listed("Skipped", report, context, "skip")),
    ]
    return [(name, text) for name, text in made if text]


def footer(context: Context) -> str:
    """Who made it, and where the rules are explained."""
    return f"<sub>onnx-ci {__version__} · [what each rule means]({context.rules_url})</sub>"


def _trouble(one: Trouble, context: Context) -> str:
    if isinstance(one, str):
        return f"❓ {prose(one, limit=600)}"
    if isinstance(one, Leg):
        name = code(label(one.model, one.variant), limit=80)
        return f"❓ {name} on {prose(one.target, limit=40)} has no result<br>\n→ {NO_RESULT}"
    return _item(*one, context)


def rule(id: str, context: Context) -> str:
    """A rule's id, linked to its explanation where it looks like one."""
    if not _RULE.fullmatch(id):
        return code(id, limit=60)
    return f"[{code(id)}]({context.rules_url}#{id.replace('.', '')})"


def _item(result: Result, finding: Finding, context: Context) -> str:
    name = label(result.model, result.variant)
    heading = [f"**{rule(finding.rule, context)}**", f"{code(name, limit=80)} on {prose(result.target, limit=120)}"]
    heading += [code(finding.subject, limit=80)] if finding.subject else []
    heading += [] if result.required or finding.status in ("warn", "skip") else ["not required"]
    if path := escape.path(finding.file):
        number = escape.line(finding.line)
        heading.append(code(f"{path}:{number}" if number else path))
    lines = [f"{ICONS[finding.status]} {' · '.join(heading)}"]
    lines += [prose(finding.message, limit=1200)] if finding.message.strip() else []
    lines += [f"→ {prose(finding.hint, limit=600)}"] if finding.hint.strip() else []
    return "<br>\n".join(lines)


def _listed(title: str, report: Report, context: Context, status: str) -> str:
    found = findings(report, "warn") if status == "warn" else findings(report, "skip")
    items = [_item(result, finding, context) for result, finding in found]
    return _fold(f"{title} ({len(found)})", ["\n\n".join(items)] if items else [])


def _versions(report: Report) -> str:
    if not report.results:
        return ""
    changes = {change.package: change for change in report.versions}
    compared = {name for one in report.results if one.target == EXPORT_TARGET for name in one.environment.packages}
    packages = {name for one in report.results for name in one.environment.packages if SHOWN_PACKAGES.fullmatch(name)}
    rows = []
    for package in sorted(packages | changes.keys() | {"python"}, key=lambda name: (name not in changes, name)):
        here = _spread(report.results, package)
        if change := changes.get(package):
            before = code(change.base, limit=40) if change.base else NONE
            rows.append([f"**{code(package, limit=60)}**", before, here])
        else:
            rows.append([code(package, limit=60), "same" if package in compared | {"python"} else NONE, here])
    if not report.base:
        return _fold("Versions", [grid(["Package", "Here"], [[package, here] for package, _, here in rows])])
    return _fold(f"Versions ({len(changes)} changed against the base)", [grid(["Package", "Base", "Here"], rows)])


def _accepted(report: Report) -> str:
    """What each model takes, so that a range which nobody declared is seen by somebody."""
    found = promises(report.results)
    rows = [
        [
            code(one.model, limit=80),
            code(f"{one.name} {one.form}".strip(), limit=200),
            prose(one.sizes, limit=400) or NONE,
        ]
        for one in found
    ]
    models = len({one.model for one in found})
    title = f"What {count(models, 'model')} {'accepts' if models == 1 else 'accept'}"
    return _fold(title, [grid(["Model", "Input", "Sizes"], rows)]) if rows else ""


def _untried(report: Report) -> str:
    """Ends of declared ranges that no case reaches, though the capture covers them: said, since a budget cut them."""
    lines = {
        f"- {code(label(result.model, result.variant), limit=80)}: {prose(found.message, limit=400)}": None
        for result, found in findings(report, "pass")
        if found.rule == "contract.untested" and found.data
    }
    return _fold(f"Declared sizes that no case tries ({len(lines)})", lines) if lines else ""


_CHANGES: dict[Kind, str] = {
    "breaking": f"💥{NBSP}breaking",
    "may break": f"⚠️{NBSP}may{NBSP}break",
    "compatible": f"✅{NBSP}compatible",
}


def _contracts(report: Report) -> str:
    """What each model's contract changes of the base's, open from the start: it is what a reviewer agrees to."""
    exports = [one for one in report.results if one.target == EXPORT_TARGET]
    changes = [(one, kind, found) for one in exports for kind, found in changes_of(one)]
    rows = [
        [
            code(label(one.model, one.variant), limit=80),
            _CHANGES[kind] + (", meant" if kind == "breaking" and found.status == "warn" else ""),
            prose(str(found.data.get("change", found.message)), limit=400),
        ]
        for one, kind, found in changes
    ]
    counts = [f"{many} {kind}" for kind in KINDS if (many := sum(kind == other for _, other, _ in changes))]
    table = [grid(["Model", "", "Change"], rows)] if rows else []
    return _fold(f"Contract changes against the base ({', '.join(counts)})", table, shown=True)


def _version(environment: Environment, package: str) -> str:
    return environment.python if package == "python" else environment.packages.get(package, "")


def _spread(results: Sequence[Result], package: str) -> str:
    """The version of a package where all legs agree; else each with its targets."""
    by_value: dict[str, set[str]] = {}
    for one in results:
        if found := _version(one.environment, package):
            by_value.setdefault(found, set()).add(one.target)
    if len(by_value) == 1:
        return code(next(iter(by_value)), limit=40)
    parts = [
        f"{code(found, limit=40)} on {', '.join(code(target, limit=40) for target in sorted(targets))}"
        for found, targets in sorted(by_value.items())
    ]
    return "<br>".join(parts) or NONE


def _slower(report: Report) -> str:
    """What each regression's profile says, base beside head."""
    parts = []
    for result, told in why.explained(report):
        name = code(label(result.model, result.variant), limit=80)
        parts.append(f"{name} on {prose(result.target, limit=40)}. {prose(why.overhead(told))}".strip())
        parts.append(grid(why.OPERATORS, [[code(op, limit=60), *spent] for op, *spent in why.operators(told)]))
        nodes = [
            [code(node, limit=120), code(op, limit=60), spent, code(at) if at != NONE else at]
            for node, op, spent, at in why.hottest(told)
        ]
        parts += [grid(why.HOTTEST, nodes)] if nodes else []
    parts += [prose(why.versions(report))] if parts else []
    return _fold("Why it takes longer than the base", ["\n\n".join(part for part in parts if part)] if parts else [])


def _conditions(report: Report) -> str:
    seen: dict[tuple[str, ...], None] = {}
    for one in report.results:
        environment = one.environment
        threads = sorted({timing.threads for timing in one.latency})
        machine = f"{environment.cpu}, {count(environment.cores, 'core')}" + (
            f", {environment.gpu}" if environment.gpu else ""
        )
        provider = one.provider or (NONE if one.target == EXPORT_TARGET else "")
        seen[
            prose(one.target, limit=40),
            code(provider, limit=60) if provider and provider != NONE else NONE,
            prose(machine, limit=200),
            ", ".join(map(str, threads)) or NONE,
            prose(f"{environment.platform}, Python {environment.python}", limit=200),
        ] = None
    headers = ["Target", "Provider", "Machine", "Threads", "Platform"]
    return _fold("Conditions", [grid(headers, [list(row) for row in sorted(seen)])]) if seen else ""


def _parity_notes(report: Report) -> str:
    seen: dict[str, int] = {}
    for one in report.results:
        for figures in one.parity:
            if figures.against == "eager" or figures.note:
                judged = "no oracle" if figures.against == "eager" else "noted"
                note = prose(figures.note or "judged by atol and rtol against PyTorch", limit=400)
                name = code(label(one.model, one.variant), limit=80)
                target = code(one.target, limit=40)
                text = f"- {name} on {target} · {code(figures.output, limit=60)} · {judged}: {note}"
                seen[text] = seen.get(text, 0) + 1
    lines = [text + (f" ({count(times, 'case')})" if times > 1 else "") for text, times in seen.items()]
    return _fold(f"How outputs were judged ({len(lines)})", lines)


def _fold(title: str, lines: Iterable[str], *, shown: bool = False) -> str:
    body = "\n".join(lines)
    opened = " open" if shown else ""
    return f"<details{opened}><summary>{title}</summary>\n\n{body}\n\n</details>" if body else ""
