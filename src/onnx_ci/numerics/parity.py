"""Parity: whether the outputs of a target are as good as PyTorch's, in layers; the second pass, after `compare`.

Per case ``compare_case(...)`` (needs arrays), then once ``judge(...)`` (none). Layers: ``parity.run``,
``parity.names``, ``parity.structure``, ``parity.dtype``, ``parity.shape``, ``parity.nonfinite``, then values:
``parity.exact``, or ``parity.tolerance``, or ``parity.runtime``.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx_ci.numerics import special, values
from onnx_ci.numerics.compare import compare_case, largest_magnitude, not_run
from onnx_ci.numerics.comparison import CaseComparison, OutputComparison
from onnx_ci.numerics.words import case_text, counted
from onnx_ci.records.model import ParitySpec
from onnx_ci.records.result import Finding, OutputFigures, Status, finding

__all__ = ["CaseComparison", "OutputComparison", "compare_case", "judge", "largest_magnitude", "not_run"]

_LAYERS = {
    "parity.structure": ("tensor, sequence and map kinds", "another kind"),
    "parity.dtype": ("dtypes", "another dtype"),
    "parity.shape": ("shapes", "another shape"),
    "parity.nonfinite": ("NaN and infinite places", "other NaN or infinite places"),
}
_HINTS = {
    "parity.structure": "The file gives a tensor where PyTorch gives a sequence, or the reverse.",
    "parity.dtype": "Cast the output in forward, or correct the type that callers were promised.",
    "parity.shape": "A size was probably computed in Python and became a constant; see the contract findings.",
    "parity.nonfinite": "Look for masked rows, log or division near zero, and overflow in a smaller dtype; "
    "parity.divergence of the export names the node where it fails.",
}


def judge(
    comparisons: Sequence[CaseComparison], spec: ParitySpec, *, today: str | None = None
) -> tuple[list[Finding], list[OutputFigures]]:
    """Judges all cases of one model on one target.

    Args:
        comparisons: Of every case that PyTorch could run; with `not_run` for those that the runtime could not.
        spec: The budget, manual tolerances, outputs that may hold NaN.
        today: ISO date; a manual tolerance whose `expires` lies before it no longer counts.

    Returns:
        One finding a rule and output (one for the model where a layer holds everywhere), with the worst case and its
        place; and the figures of every output of every case.
    """
    usual = [one for one in comparisons if not one.case.is_special]
    others = [one for one in comparisons if one.case.is_special]
    if not usual:
        message = "no case was compared: nothing is known about parity"
        return [finding("parity.names", "error", "", message, hint="Add a case, or see why none could be made.")], []
    findings, figures = _judge(usual, spec, today, None)
    findings = special.explained(findings, [one.case for one in usual])
    for advisory, group in special.groups(others, spec).items():
        found, rows = _judge(group, spec, today, usual)
        findings = special.merged(findings, special.told(found, group, advisory))
        figures += special.rows(rows, advisory)
    return findings, figures


def _judge(
    comparisons: Sequence[CaseComparison], spec: ParitySpec, today: str | None, usual: Sequence[CaseComparison] | None
) -> tuple[list[Finding], list[OutputFigures]]:
    findings = [_run(comparisons), _names(comparisons)]
    ran = [comparison for comparison in comparisons if not comparison.stopped]
    for rule in _LAYERS:
        findings += _layer(rule, ran)
    findings += _reference_nan(ran, spec)
    judged = values.judge_values(ran, spec, today, usual)
    return [*findings, *judged.findings], judged.figures


def _run(comparisons: Sequence[CaseComparison]) -> Finding:
    stopped = [comparison for comparison in comparisons if comparison.stopped]
    total = counted(len(comparisons), "case")
    if not stopped:
        return finding("parity.run", "pass", "", f"all of {total} ran")
    first = stopped[0]
    where = case_text(first.case.name, first.case.dims)
    message = (
        f"{len(stopped)} of {total} stopped in the runtime though PyTorch runs them; first {where}: {first.stopped}"
    )
    hint = "If the size is not meant to work, narrow the dim's range; else a size became a constant at export."
    data = {"cases": [comparison.case.name for comparison in stopped]}
    return finding("parity.run", "fail", "", message, hint=hint, data=data)


def _names(comparisons: Sequence[CaseComparison]) -> Finding:
    wrong = [comparison for comparison in comparisons if comparison.names]
    if wrong:
        message = f"outputs are not those of PyTorch: {wrong[0].names}"
        return finding("parity.names", "fail", "", message, hint="Compare the outputs of forward with output_names.")
    names = dict.fromkeys(item.base for comparison in comparisons for item in comparison.outputs)
    if not names:
        return finding("parity.names", "skip", "", "no case ran to its end, so no output was seen")
    return finding("parity.names", "pass", "", f"{counted(len(names), 'output')}: {', '.join(names)}")


def _layer(rule: str, ran: Sequence[CaseComparison]) -> list[Finding]:
    what, instead = _LAYERS[rule]
    found = []
    by_output = values.by_output(ran)
    for output, seen in by_output.items():
        faults = [(case, item.fault) for case, item in seen if item.fault is not None and item.fault.rule == rule]
        faults.sort(key=lambda pair: pair[1].status != "fail")
        if faults:
            case, fault = faults[0]
            where = case_text(case.name, case.dims)
            message = f"{output}: {instead} in {len(faults)} of {counted(len(seen), 'case')}; {where}: {fault.text}"
            data = {"cases": [case.name for case, _ in faults]}
            found.append(finding(rule, fault.status, output, message, hint=_HINTS[rule], data=data))
    if found or not by_output:
        return found
    return [finding(rule, "pass", "", f"{what} agree in {counted(len(ran), 'case')}")]


def _reference_nan(ran: Sequence[CaseComparison], spec: ParitySpec) -> list[Finding]:
    found = []
    for output, seen in values.by_output(ran).items():
        with_nan = [(case, item) for case, item in seen if item.nans]
        if not with_nan:
            continue
        with_nan.sort(key=lambda pair: pair[0].origin != "user")
        case, item = with_nan[0]
        allowed = item.base in spec.allow_nan
        status: Status = "pass" if allowed else "fail" if case.origin == "user" else "warn"
        message = f"{output}: PyTorch's own output holds NaN in {counted(len(with_nan), 'case')}; first "
        message += f"{case_text(case.name, case.dims)}, {counted(item.nans, 'place')}"
        message += "; allowed by allow_nan" if allowed else "; NaN = NaN proves nothing"
        hint = "" if allowed else f"Mend the module, or name {item.base} in parity.allow_nan if NaN is meant there."
        found.append(finding("parity.reference-nan", status, output, message, hint=hint))
    return found
