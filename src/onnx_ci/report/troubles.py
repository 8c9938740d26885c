"""What somebody must look at, what leads furthest first: one order for the markdown, the page and the terminal."""

from __future__ import annotations

from onnx_ci.records.report import Leg, Report
from onnx_ci.records.result import Finding, Result
from onnx_ci.report.escape import path
from onnx_ci.report.merge import why_missing
from onnx_ci.report.rows import findings

Trouble = tuple[Result, Finding] | Leg | str
"""A finding with its result, a leg that has no result, or a problem in words."""

NO_RESULT = "Its job was not started, or ended before it wrote one: look at its log."


def troubles(report: Report) -> list[Trouble]:
    """Broken promises, those with a line of code first; what could not be told; legs without a result.

    What only concerns targets that are not required stands below all of it.
    """
    found = sorted(findings(report, "fail", "error"), key=gravity)
    required = [pair for pair in found if pair[0].required]
    absent = [leg for leg in report.missing if leg.required and not why_missing(leg, report.results)]
    return [*required, *report.problems, *absent, *found[len(required) :]]


def gravity(pair: tuple[Result, Finding]) -> tuple[bool, bool, bool]:
    """What sorts findings: those of required targets first, then what is known to be broken, then what has a place."""
    result, finding = pair
    return not result.required, finding.status == "error", not path(finding.file)
