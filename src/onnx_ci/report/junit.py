"""The report as JUnit XML, for whatever reads test reports: broken promises are failures, what can't be told errors.

What readers need is measured, not specified: a class name, a unique name, a time that is not 0 (junit-xml leaves that
out), and a file with a line, without which no reader annotates.
"""

from __future__ import annotations

from collections.abc import Iterator

from junit_xml import TestCase, TestSuite, to_xml_report_string

from onnx_ci.records.report import Leg, Report
from onnx_ci.records.result import Finding, Result, causes, label
from onnx_ci.report.escape import clean
from onnx_ci.report.escape import line as line_number
from onnx_ci.report.escape import path as repository_path
from onnx_ci.report.merge import why_missing

_SHORTEST = 0.001
_MOST_CAUSES = 20


def render(report: Report, *, config: str) -> str:
    """Writes one suite for each leg, and a case for each judged fact.

    Args:
        report: The merged report.
        config: Path of the config file: the place of what has no file of its own.
    """
    names = _Names()
    suites = [_suite(result, names, config) for result in report.results]
    others = [_missing(leg, why_missing(leg, report.results), names, config) for leg in report.missing]
    others += [_problem(problem, names, config) for problem in report.problems]
    if others or not suites:
        suites.append(TestSuite("onnx-ci", others))
    return str(to_xml_report_string(suites))


class _Names:
    """Makes names unique: a reader folds cases of one name into one."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def unique(self, name: str) -> str:
        at = self.seen[name] = self.seen.get(name, 0) + 1
        return name if at == 1 else self.unique(f"{name} ({at})")


def _suite(result: Result, names: _Names, config: str) -> TestSuite:
    leg = _leg(result.model, result.variant, result.target)
    place = _place(result, config)
    cases = [
        _case(result, finding, seconds, names, place) for finding, seconds in zip(*_timed(result), strict=True)
    ] + list(_silent_stages(result, names, place))
    packages = {clean(name): clean(version) for name, version in sorted(result.environment.packages.items())}
    properties = {"python": clean(result.environment.python), "artifact": clean(result.artifact or ""), **packages}
    return TestSuite(leg, cases, properties=properties)


def _timed(result: Result) -> tuple[list[Finding], list[float]]:
    """Each finding with its seconds: the first of a stage carries the stage's."""
    left = {stage: cost.seconds for stage, cost in result.stages.items()}
    return result.findings, [left.pop(finding.stage, 0.0) for finding in result.findings]


def _case(result: Result, finding: Finding, seconds: float, names: _Names, place: tuple[str, int]) -> TestCase:
    leg = _leg(result.model, result.variant, result.target)
    file = repository_path(finding.file)
    case = _new(
        names.unique(f"{leg} {clean(finding.rule)} {clean(finding.subject)}".strip()),
        _class(result.model, result.variant, result.target),
        seconds,
        (file, line_number(finding.line) or 1) if file else place,
    )
    message = clean(finding.message) or clean(finding.rule)
    chain = [f"cause: {clean(one)}" for one in reversed(causes(finding)[:_MOST_CAUSES])]
    detail = "\n".join(part for part in [message, clean(finding.hint), _at(finding), *chain] if part)
    required = result.required
    if finding.status == "fail" and required:
        case.add_failure_info(message, detail, clean(finding.rule))
    elif finding.status == "error" and required:
        case.add_error_info(message, detail, clean(finding.rule))
    elif finding.status == "skip":
        case.add_skipped_info(message, detail)
    elif finding.status in ("fail", "error"):
        case.add_skipped_info(f"a warning, since the target is not required: {message}", detail)
    elif finding.status == "warn":
        case.stdout = f"warning: {detail}"
    return case


def _silent_stages(result: Result, names: _Names, place: tuple[str, int]) -> Iterator[TestCase]:
    spoken = {finding.stage for finding in result.findings}
    leg, where = _leg(result.model, result.variant, result.target), _class(result.model, result.variant, result.target)
    for stage, cost in result.stages.items():
        if stage not in spoken:
            yield _new(names.unique(f"{leg} {clean(stage)}"), where, cost.seconds, place)
    claimed = result.status in ("fail", "error") and not any(one.status == result.status for one in result.findings)
    if claimed and result.required:
        case = _new(names.unique(f"{leg} result"), where, 0.0, place)
        case.add_error_info(f"the result says {result.status!r}, and no finding says why", None, "result")
        yield case


def _missing(leg: Leg, why: str, names: _Names, config: str) -> TestCase:
    name = _leg(leg.model, leg.variant, leg.target)
    case = _new(names.unique(f"{name} result"), _class(leg.model, leg.variant, leg.target), 0.0, (config, 1))
    if why or not leg.required:
        case.add_skipped_info(clean(why) or "no result, and not required")
    else:
        case.add_error_info("no result", "The leg was planned, and nothing came of it.", "missing")
    return case


def _problem(problem: str, names: _Names, config: str) -> TestCase:
    case = _new(names.unique(f"onnx-ci {clean(problem, limit=120)}"), "onnx-ci.report", 0.0, (config, 1))
    case.add_error_info(clean(problem), None, "problem")
    return case


def _new(name: str, classname: str, seconds: float, place: tuple[str, int]) -> TestCase:
    file, number = place
    seconds = seconds if seconds == seconds else 0.0  # NaN
    return TestCase(name, classname, min(max(seconds, _SHORTEST), 1e6), file=file, line=number)


def _place(result: Result, config: str) -> tuple[str, int]:
    """Where the leg's findings stand that name no file: where another one of it stands, else the config."""
    for finding in result.findings:
        if file := repository_path(finding.file):
            return file, line_number(finding.line) or 1
    return config, 1


def _at(finding: Finding) -> str:
    file, number = repository_path(finding.file), line_number(finding.line)
    return (f"{file}:{number}" if number else file) if file else ""


def _leg(model: str, variant: str | None, target: str) -> str:
    return f"{clean(label(model, variant), limit=200)} [{clean(target, limit=100)}]"


def _class(model: str, variant: str | None, target: str) -> str:
    return f"onnx-ci.{clean(label(model, variant), limit=200)}.{clean(target, limit=100)}"
