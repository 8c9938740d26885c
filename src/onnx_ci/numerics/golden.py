"""Goldens: whether today's outputs are still those that were reviewed, on this processor or another.

Judged by the layers of parity, all under one rule, ``golden.drift``. Another processor moves float32 by up to 8.5e-7
in relL2, so last digits are no drift; nor is an index that flips where its scores tie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx_ci.numerics.comparison import ExactFigures, OutputComparison
from onnx_ci.numerics.dtypes import FloatDtype, Value, float_dtype_named
from onnx_ci.numerics.exact import CaseContext
from onnx_ci.numerics.figures import Measures
from onnx_ci.numerics.layers import compare_outputs
from onnx_ci.numerics.ties import Pairs
from onnx_ci.numerics.unordered import aligned
from onnx_ci.numerics.words import at_text, case_text, counted, sci
from onnx_ci.records.base import record
from onnx_ci.records.cases import OpenOrder
from onnx_ci.records.model import ParitySpec
from onnx_ci.records.result import Finding, finding

_FLOOR = 1e-5  # relL2 between processors is at most 8.5e-7 in float32
_NO_DIGITS = 0.1


@record
class GoldenComparison:
    """One output of one golden case.

    Attributes:
        who: Whose output it is: "PyTorch", or the target's name.
        problem: What drifted, in a sentence without the output's name; empty when nothing did.
        note: What was explained or left out.
    """

    case: str
    dims: dict[str, int]
    output: str
    who: str
    problem: str
    note: str
    error: float | None
    limit: float | None


def compare_golden(
    case: str,
    golden: Mapping[str, Value],
    actual: Mapping[str, Value],
    *,
    who: str,
    e_torch: Mapping[str, float | None] | None = None,
    spec: ParitySpec | None = None,
    dims: Mapping[str, int] | None = None,
    unit: float = 1.0,
    inner: Mapping[str, Pairs] | None = None,
    orders: Mapping[str, OpenOrder] | None = None,
) -> list[GoldenComparison]:
    """Compares the outputs of one golden case, by name; an output that is missing on one side has drifted.

    Args:
        case: Its name, or its folder's.
        golden: The reviewed outputs.
        actual: Today's, from PyTorch or from a target, for the stored inputs.
        who: Whose they are, for messages.
        e_torch: What PyTorch errs by output (`CaseOutput.e_torch`): a model that is ill-conditioned moves more.
        spec: For `ties`.
        dims: For messages.
        unit: The largest magnitude among the inputs.
        inner: By exact output, the scores inside the graph that it was chosen by.
        orders: By output, where no order is promised.
    """
    actual = aligned(orders or {}, golden, actual)
    shared = [name for name in golden if name in actual]
    context = CaseContext(
        spec=spec or ParitySpec(), unit=unit, no_oracle="a golden", unsure=frozenset(), inner=inner or {}
    )
    found = []
    for name in [*(set(golden) - set(actual)), *(set(actual) - set(golden))]:
        problem = "is no longer given" if name in golden else "is new: the golden does not have it"
        found.append(_made(case, dims, name, who, problem=problem))
    for item in compare_outputs(shared, golden, actual, {}, context):
        found.append(_judge(case, dims, who, item, (e_torch or {}).get(item.base)))
    return found


def judge_golden(comparisons: Sequence[GoldenComparison]) -> list[Finding]:
    """One finding an output: pass with the worst case, or drift with the first place and its values.

    Comparisons of several targets, or of PyTorch and a target, may come together; each `who` is judged alone.
    """
    if not comparisons:
        return [finding("golden.drift", "error", "", "no golden output was compared", hint="Accept the goldens anew.")]
    grouped: dict[tuple[str, str], list[GoldenComparison]] = {}
    for one in comparisons:
        grouped.setdefault((one.who, one.output), []).append(one)
    return [_finding(who, output, seen) for (who, output), seen in grouped.items()]


def _finding(who: str, output: str, seen: list[GoldenComparison]) -> Finding:
    drifted = [one for one in seen if one.problem]
    if drifted:
        worst = max(drifted, key=lambda one: one.error if one.error is not None else 0.0)
        message = f"{output} of {who} {worst.problem} in {case_text(worst.case, worst.dims)}"
        message += f"; {len(drifted)} of {counted(len(seen), 'case')}" if len(seen) > 1 else ""
        hint = "If the change is meant, review it and run `onnx-ci golden accept`; else find what moved."
        data = {"who": who, "cases": [one.case for one in drifted]}
        return finding("golden.drift", "fail", output, message, hint=hint, data=data)
    worst = max(seen, key=lambda one: one.error or 0.0)
    message = f"{output} of {who} is as reviewed in {counted(len(seen), 'case')}"
    if worst.error is not None and worst.limit is not None:
        message += f": relL2 {sci(worst.error)}, allowed {sci(worst.limit)}"
    notes = [one.note for one in seen if one.note]
    message += f" ({notes[0]})" if notes else ""
    return finding("golden.drift", "pass", output, message, data={"who": who})


def _judge(
    case: str, dims: Mapping[str, int] | None, who: str, item: OutputComparison, e_torch: float | None
) -> GoldenComparison:
    if item.fault is not None:
        layer = item.fault.rule.partition(".")[2]
        return _made(case, dims, item.output, who, problem=f"has another {layer}: {item.fault.text}")
    if item.exact is not None:
        return _made(case, dims, item.output, who, problem=_exact_problem(item.exact), note=item.exact.note)
    kind = float_dtype_named(item.dtype)
    if item.floats is None or kind is None:
        return _made(case, dims, item.output, who, problem="could not be compared")
    limit = _limit(item.floats, kind, e_torch)
    return _made(
        case, dims, item.output, who, problem=_problem(item.floats, limit), error=item.floats.e_runtime, limit=limit
    )


def _limit(floats: Measures, kind: FloatDtype, e_torch: float | None) -> float:
    """relL2 that is no drift: a few times what PyTorch errs, never below the spread of processors in this dtype."""
    return max(_FLOOR, 2 * kind.floor, 4.0 * (e_torch or 0.0))


def _problem(floats: Measures, limit: float) -> str:
    if limit >= 4.0 * _NO_DIGITS:
        # PyTorch has not one digit of it (zero but for rounding): only its size can be compared.
        allowed = max(_FLOOR * floats.unit, 4.0 * floats.peak)
        if floats.max_abs <= allowed:
            return ""
        return f"drifted by {sci(floats.max_abs)}, allowed {sci(allowed)}{_place(floats)}"
    if not floats.e_runtime <= limit:
        return f"drifted by relL2 {sci(floats.e_runtime)}, allowed {sci(limit)}{_place(floats)}"
    if not floats.max_abs <= limit * floats.peak:
        return f"drifted by {sci(floats.max_abs)} in one element, allowed {sci(limit * floats.peak)}{_place(floats)}"
    return ""


def _place(floats: Measures) -> str:
    return f", most{at_text(floats.at)}: {floats.expected:.7g} reviewed, {floats.actual:.7g} now"


def _exact_problem(exact: ExactFigures) -> str:
    if not exact.differ:
        return ""
    first = f"first{at_text(exact.at)}: {exact.expected} reviewed, {exact.actual} now"
    return f"differs in {exact.differ} of {exact.count} elements, {first}"


def _made(
    case: str,
    dims: Mapping[str, int] | None,
    output: str,
    who: str,
    *,
    problem: str,
    note: str = "",
    error: float | None = None,
    limit: float | None = None,
) -> GoldenComparison:
    return GoldenComparison(
        case=case,
        dims=dict(dims or {}),
        output=output,
        who=who,
        problem=problem,
        note=note,
        error=error,
        limit=limit,
    )
