"""Workflow commands: annotations at file and line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from onnx_ci.records.report import Report
from onnx_ci.records.result import EXPORT_TARGET, Finding, Result, label, output_of
from onnx_ci.report.escape import command_data, command_property, line, path
from onnx_ci.report.merge import why_missing
from onnx_ci.report.rows import findings, legs_of
from onnx_ci.report.troubles import gravity

Level = Literal["error", "warning"]
_CAUSE = "parity.divergence"
PER_LEVEL = 10
"""What GitHub shows of one level and step; it drops the rest without a word."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Annotation:
    """What is said at a line of a file; without a file it is said of the run."""

    level: Level
    title: str
    message: str
    file: str = ""
    line: int | None = None

    def command(self) -> str:
        """The workflow command, on one line."""
        properties = [f"file={command_property(self.file)}"] if self.file else []
        properties += [f"line={self.line}"] if self.file and self.line else []
        properties += [f"title={command_property(self.title, limit=200)}"]
        return f"::{self.level} {','.join(properties)}::{command_data(self.message)}"


def collect(report: Report, *, config: str) -> list[Annotation]:
    """Everything worth an annotation, the gravest first; what is said of one line of code is said there at once.

    An output that fails parity is told where `parity.divergence` found its cause.

    Args:
        report: The merged report.
        config: Path of the config file, where findings without a file are shown.
    """
    found: list[Annotation] = []
    listed = sorted(findings(report, "error", "fail", "warn"), key=gravity)
    causes = [(result, finding) for result, finding in listed if finding.rule == _CAUSE and path(finding.file)]
    for result, finding in listed:
        broken = finding.status != "warn" and result.required
        subject = f" ({finding.subject})" if finding.subject else ""
        cause = _cause(result, finding, causes)
        file = path(cause.file)
        found.append(
            Annotation(
                level="error" if broken else "warning",
                title=f"{finding.rule}: {label(result.model, result.variant)} on {result.target}{subject}",
                message="\n".join(part for part in (finding.message, finding.hint) if part) or finding.rule,
                file=file or config,
                line=(line(cause.line) or 1) if file else 1,
            )
        )
    found += [Annotation(level="error", title="onnx-ci", message=problem) for problem in report.problems]
    for leg in report.missing:
        why = why_missing(leg, report.results)
        said = f"{label(leg.model, leg.variant)} on {leg.target}: {why or 'no result'}"
        level: Level = "error" if leg.required and not why else "warning"
        found.append(Annotation(level=level, title="onnx-ci: no result", message=said, file=config, line=1))
    return sorted(_at_once(found, config), key=lambda one: one.level != "error")


def _cause(result: Result, finding: Finding, causes: Iterable[tuple[Result, Finding]]) -> Finding:
    """The finding that names where this one's output goes wrong: of its own leg or of the export; else itself."""
    for other, cause in causes:
        same = (other.model, other.variant) == (result.model, result.variant)
        legs = legs_of(other) & {*legs_of(result), EXPORT_TARGET}
        told = same and legs and finding.stage == "parity"
        outputs = cause.data.get("outputs")
        if told and isinstance(outputs, list) and output_of(finding.subject, outputs) in outputs:
            return cause
    return finding


def _at_once(found: Sequence[Annotation], config: str) -> list[Annotation]:
    """One annotation a line: of the gravest level there, the others' words below those of the first."""
    lines: dict[tuple[object, ...], list[Annotation]] = {}
    for at, one in enumerate(found):  # in the config each stands for a model of its own
        lines.setdefault((one.file, one.line, at if one.file in ("", config) else None), []).append(one)
    return [_joined(ones) for ones in lines.values()]


def _joined(ones: Sequence[Annotation]) -> Annotation:
    first, *others = ones
    return replace(
        first,
        level=min(ones, key=lambda one: one.level != "error").level,
        title=first.title + (f", and {len(others)} more" if others else ""),
        message="\n\n".join([first.message, *(f"{one.title}\n{one.message}" for one in others)]),
    )


def commands(found: Sequence[Annotation], *, where: str) -> list[str]:
    """The commands, at most ten of a level: where there are more, the tenth says how many and where they are."""
    written = []
    levels: tuple[Level, ...] = ("error", "warning")
    for level in levels:
        ours = [one for one in found if one.level == level]
        if len(ours) > PER_LEVEL:
            more = len(ours) - (PER_LEVEL - 1)
            ours = ours[: PER_LEVEL - 1]
            ours.append(Annotation(level=level, title="onnx-ci", message=f"and {more} more: see {where}"))
        written += [one.command() for one in ours]
    return written
