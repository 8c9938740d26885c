"""The last layer of parity: the values of each output over all its cases, by the rule that is meant for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnx_ci.numerics import budget
from onnx_ci.numerics.budget import Limits
from onnx_ci.numerics.comparison import CaseComparison, ExactFigures, OutputComparison
from onnx_ci.numerics.dtypes import FloatDtype, float_dtype_named
from onnx_ci.numerics.figures import Measures
from onnx_ci.numerics.rows import broken_row, exact_row, float_row
from onnx_ci.numerics.words import at_text, case_text, counted, sci
from onnx_ci.records.cases import Case
from onnx_ci.records.model import ParitySpec, Tolerance
from onnx_ci.records.result import Finding, OutputFigures, Status, finding

Seen = list[tuple[Case, OutputComparison]]


@dataclass(frozen=True)
class Judged:
    """The findings of all outputs, and the figures of each case of each."""

    findings: list[Finding]
    figures: list[OutputFigures]


@dataclass(frozen=True)
class _One:
    """A float output of one case with what it may err, and by which rule."""

    case: Case
    item: OutputComparison
    floats: Measures
    limit: Limits
    status: Status
    pressure: float


def by_output(ran: Sequence[CaseComparison]) -> dict[str, Seen]:
    """The outputs by name, each with its cases, in the order in which they come."""
    grouped: dict[str, Seen] = {}
    for comparison in ran:
        for item in comparison.outputs:
            grouped.setdefault(item.output, []).append((comparison.case, item))
    return grouped


def judge_values(
    ran: Sequence[CaseComparison], spec: ParitySpec, today: str | None, usual: Sequence[CaseComparison] | None = None
) -> Judged:
    """Judges the values of every output that came through the layers before.

    Args:
        ran: The cases.
        spec: The budget, and manual tolerances.
        today: ISO date.
        usual: Of cases of special values, the others, which tell what rounding does.
    """
    pools = None if usual is None else {output: _floats(seen) for output, seen in by_output(usual).items()}
    findings: list[Finding] = []
    figures: list[OutputFigures] = []
    for output, seen in by_output(ran).items():
        whole = [(case, item) for case, item in seen if item.fault is None]
        figures += [broken_row(case, item) for case, item in seen if item.fault is not None]
        if not whole:
            findings.append(_skipped(output, seen))
            continue
        exact = [(case, item, item.exact) for case, item in whole if item.exact is not None]
        floats = _floats(whole)
        pool = None if pools is None else [one for _, _, one in pools.get(output, [])]
        judged = [_judge_exact(output, exact)] if exact else []
        judged += [_judge_floats(output, floats, spec, today, pool)] if floats else []
        for part in judged:
            findings += part.findings
            figures += part.figures
    return Judged(findings, figures)


def _floats(seen: Seen) -> list[tuple[Case, OutputComparison, Measures]]:
    return [(case, item, item.floats) for case, item in seen if item.floats is not None]


def _skipped(output: str, seen: Seen) -> Finding:
    fault = seen[0][1].fault
    rule = "parity.runtime" if float_dtype_named(seen[0][1].dtype) else "parity.exact"
    return finding(rule, "skip", output, f"{output}: not judged, since {fault.rule if fault else 'a layer'} failed")


def _judge_exact(output: str, seen: list[tuple[Case, OutputComparison, ExactFigures]]) -> Judged:
    figures = [exact_row(case, item, exact) for case, item, exact in seen]
    wrong = [(case, item, exact) for case, item, exact in seen if exact.differ]
    flips = sum(exact.explained for _, _, exact in seen)
    data = {"explained": flips, "cases": [case.name for case, _, _ in wrong]}
    if not wrong:
        message = f"{output}: equal in {counted(len(seen), 'case')}"
        notes = [exact.note for _, _, exact in seen if exact.explained]
        message += f" but for {notes[0]}" if notes else ""
        return Judged([finding("parity.exact", "pass", output, message, data=data)], figures)
    case, item, exact = max(wrong, key=lambda one: one[2].differ)
    message = (
        f"{output}: {exact.differ} of {exact.count} elements differ in {case_text(case.name, case.dims)}; first"
        f"{at_text(exact.at)}: expected {exact.expected}, got {exact.actual}{_more(len(wrong), len(seen))}"
    )
    message += f"; besides, {exact.note}" if exact.note else ""
    return Judged([finding("parity.exact", "fail", output, message, hint=_exact_hint(item), data=data)], figures)


def _exact_hint(item: OutputComparison) -> str:
    if item.unsure:
        return "PyTorch's own output changes from call to call: seed it, or take the randomness out of forward."
    return (
        "Flips are explained at ties of scores that are an output, or that an argmax, top-k, NMS or comparison reads; "
        "if it is chosen in another way, return the scores as an output too."
    )


def _judge_floats(
    output: str,
    seen: list[tuple[Case, OutputComparison, Measures]],
    spec: ParitySpec,
    today: str | None,
    pool: Sequence[Measures] | None,
) -> Judged:
    item = seen[0][1]
    manual = spec.outputs.get(item.base)
    expired = manual is not None and manual.expires is not None and today is not None and manual.expires < today
    kind = float_dtype_named(item.dtype)
    assert kind is not None  # only float dtypes have measures
    if manual is not None and not expired:
        return _judge_manual(output, seen, manual)
    kind, k = budget.judged_by(kind, spec, item.base)
    measures = [floats for _, _, floats in seen]
    allowed = budget.limits(measures, kind, k) if pool is None else budget.special_limits(measures, pool, kind, k)
    ones = [_one(case, item, floats, limit) for (case, item, floats), limit in zip(seen, allowed, strict=True)]
    calibrated = ""
    if spec.calibration is not None and spec.budget_of(item.base) != spec.budget:
        calibrated = f"budget {k:.3g} (calibrated on {spec.calibration.date})"
    findings = [_runtime(output, ones, kind, k, calibrated)]
    if expired and manual is not None:
        findings[0] = _with_note(findings[0], f"; the manual tolerance expired on {manual.expires}")
    return Judged(
        [*findings, *_unoracled(output, ones, kind), *_ill(output, ones, kind)], [_row(one, calibrated) for one in ones]
    )


def _one(case: Case, item: OutputComparison, floats: Measures, limit: Limits) -> _One:
    if floats.e_torch is not None:
        return _One(case, item, floats, limit, budget.status(floats, limit), budget.pressure(floats, limit))
    over = item.over_default if item.over_default is not None else float("inf")
    if over <= 1.0:
        return _One(case, item, floats, limit, "pass", over)
    # Without an oracle an output that is zero but for rounding can't be told from a small wrong one.
    near_zero = floats.max_abs <= limit.output * floats.unit
    return _One(case, item, floats, limit, "warn" if near_zero else "fail", over)


def _runtime(output: str, ones: list[_One], kind: FloatDtype, k: float, calibrated: str) -> Finding:
    order: dict[Status, int] = {"fail": 2, "warn": 1, "pass": 0, "skip": 0, "error": 3}
    worst = max(ones, key=lambda one: (order[one.status], one.pressure))
    bad = [one for one in ones if one.status == worst.status]
    message = f"{output}: {_told(worst, kind)}"
    if worst.status != "pass":
        message += _values(worst) + _more(len(bad), len(ones)) + _doubt(worst)
    else:
        where = case_text(worst.case.name, worst.case.dims)
        message += f"; worst of {len(ones)} cases: {where}" if len(ones) > 1 else f" in {where}"
    message += f"; {calibrated}" if calibrated else ""
    data = {
        "e_runtime": worst.floats.e_runtime,
        "e_torch": worst.floats.e_torch,
        "limit": worst.limit.output,
        "budget": k,
        "case": worst.case.name,
        "cases": [one.case.name for one in bad] if worst.status != "pass" else [],
    }
    return finding("parity.runtime", worst.status, output, message, hint=_hint(worst), data=data)


def _told(one: _One, kind: FloatDtype) -> str:
    """The figure that decides, what it may be, and what PyTorch itself errs."""
    floats, limit = one.floats, one.limit
    if floats.e_torch is None:
        atol = kind.atol * floats.peak
        text = f"{sci(one.pressure)} times what rtol {sci(kind.rtol)} and atol {sci(atol)} allow against PyTorch itself"
        return text
    name = "rms error" if floats.absolute else "relL2"
    which = budget.broken(floats, limit)
    if which == "element":
        return (
            f"one element is off by {sci(floats.max_abs)}, allowed {sci(limit.element)} (PyTorch itself: "
            f"{sci(floats.max_abs_torch)}), though {name} is {sci(floats.e_runtime)}, allowed {sci(limit.output)}"
        )
    if which == "item":
        return (
            f"item {floats.worst_item_at} of the batch has {name} {sci(floats.worst_item)}, allowed {sci(limit.item)} "
            f"(PyTorch itself: {sci(floats.worst_item_torch)})"
        )
    return (
        f"{name} {sci(floats.e_runtime)} against the float64 oracle, allowed {sci(limit.output)} "
        f"(PyTorch itself: {sci(floats.e_torch)})"
    )


def _values(one: _One) -> str:
    floats = one.floats
    text = f"; worst in {case_text(one.case.name, one.case.dims)}{at_text(floats.at)}"
    return f"{text}: expected {floats.expected:.7g}, got {floats.actual:.7g}"


def _doubt(one: _One) -> str:
    """Why it is no more than a warning."""
    if one.status != "warn":
        return ""
    if one.floats.e_torch is None:
        return "; too near zero to be told from rounding"
    if one.floats.absolute:
        return "; the output is zero but for rounding, so this may be rounding of larger inner values"
    return "; PyTorch's own error is known from too few elements to call this a fault"


def _hint(worst: _One) -> str:
    if worst.status == "pass":
        return ""
    if worst.item.unsure:
        return "PyTorch's own output changes from call to call: seed it, or take the randomness out of forward."
    if worst.item.varies:
        return "The runtime's output changes from run to run: look for random operators in the file."
    if worst.status == "warn":
        return "More cases, or a larger batch, tell; or set a manual tolerance with its reason."
    return "See where it first goes wrong; a manual tolerance needs a reason."


def _unoracled(output: str, ones: list[_One], kind: FloatDtype) -> list[Finding]:
    without = [one for one in ones if one.floats.e_torch is None]
    if not without:
        return []
    tolerance = f"rtol {sci(kind.rtol)} and atol {sci(kind.atol)} of the largest element"
    message = (
        f"{output}: judged against PyTorch itself in {len(without)} of {counted(len(ones), 'case')}, by "
        f"{tolerance}, since there is no oracle: {without[0].item.unoracled}"
    )
    data = {"cases": [one.case.name for one in without], "rtol": kind.rtol, "atol": kind.atol}
    return [finding("parity.unoracled", "pass", output, message, data=data)]


def _ill(output: str, ones: list[_One], kind: FloatDtype) -> list[Finding]:
    over = [one for one in ones if not one.floats.absolute and (one.floats.e_torch or 0.0) > kind.ill]
    if not over:
        return []
    worst = max(over, key=lambda one: one.floats.e_torch or 0.0)
    message = (
        f"{output}: PyTorch itself errs by relL2 {sci(worst.floats.e_torch or 0.0)} in "
        f"{case_text(worst.case.name, worst.case.dims)}, more than {sci(kind.ill)}, so parity says little here"
        f"{_more(len(over), len(ones))}"
    )
    data = {"e_torch": worst.floats.e_torch, "limit": kind.ill, "cases": [one.case.name for one in over]}
    hint = "Look for differences of large numbers, long sums in a small dtype, or a branch on a rounded value."
    return [finding("parity.ill-conditioned", "warn", output, message, hint=hint, data=data)]


def _judge_manual(output: str, seen: list[tuple[Case, OutputComparison, Measures]], manual: Tolerance) -> Judged:
    shares = [item.over_manual if item.over_manual is not None else float("inf") for _, item, _ in seen]
    over = sum(1 for share in shares if not share <= 1.0)
    at = max(range(len(seen)), key=lambda index: shares[index])
    case, _, floats = seen[at]
    text = f"{output}: {sci(shares[at])} times what rtol {sci(manual.rtol)} and atol {sci(manual.atol)} allow"
    text += f", worst in {case_text(case.name, case.dims)}"
    if over:
        text += f"{at_text(floats.at)}: expected {floats.expected:.7g}, got {floats.actual:.7g}{_more(over, len(seen))}"
    status: Status = "fail" if over else "pass"
    hint = "The manual tolerance is broken: mend the model, or review the tolerance and its reason." if over else ""
    message = f"{text} (manual: {manual.reason})"
    data = {"rtol": manual.rtol, "atol": manual.atol, "share": shares[at], "reason": manual.reason}
    figures = [
        float_row(
            case,
            item,
            floats,
            "pass" if share <= 1.0 else "fail",
            limit=None,
            note=f"manual tolerance: {manual.reason}",
        )
        for (case, item, floats), share in zip(seen, shares, strict=True)
    ]
    return Judged([finding("parity.tolerance", status, output, message, hint=hint, data=data)], figures)


def _row(one: _One, calibrated: str) -> OutputFigures:
    if one.floats.e_torch is None:
        return float_row(one.case, one.item, one.floats, one.status, limit=None, note=one.item.unoracled)
    return float_row(one.case, one.item, one.floats, one.status, limit=one.limit.output, note=calibrated)


def _more(bad: int, total: int) -> str:
    return f"; {bad} of {counted(total, 'case')}" if total > 1 else ""


def _with_note(found: Finding, note: str) -> Finding:
    return replace(found, message=found.message + note)
