"""The figures of one output of one case as they stand in a result."""

from __future__ import annotations

from onnx_ci.numerics.comparison import ExactFigures, OutputComparison
from onnx_ci.numerics.figures import Measures
from onnx_ci.records.cases import Case
from onnx_ci.records.result import OutputFigures, Status


def float_row(
    case: Case, item: OutputComparison, floats: Measures, status: Status, *, limit: float | None, note: str = ""
) -> OutputFigures:
    """A float output; `limit` None where it is judged by atol and rtol."""
    notes = [note] if note else []
    notes += ["zero but for rounding: errors are rms, not relL2"] if floats.absolute else []
    notes += [f"{item.left_out} elements left out, chosen by explained flips"] if item.left_out else []
    notes += ["two runs differ; the worse is shown"] if item.varies else []
    return OutputFigures(
        case=case.name,
        output=item.output,
        dtype=item.dtype,
        shape=item.shape,
        dims=case.dims,
        status=status,
        against="eager" if floats.e_torch is None else "oracle",
        e_torch=floats.e_torch,
        e_runtime=floats.e_runtime,
        limit=limit,
        max_abs=floats.max_abs,
        max_abs_at=floats.at,
        max_rel=floats.max_rel,
        cosine=floats.cosine,
        ulp=floats.ulp,
        beyond=item.beyond,
        argmax_agreement=floats.argmax_agreement,
        note="; ".join(notes),
    )


def exact_row(case: Case, item: OutputComparison, exact: ExactFigures) -> OutputFigures:
    """An output that is compared exactly."""
    notes = [exact.note] if exact.note else []
    notes += ["two runs differ; the worse is shown"] if item.varies else []
    return OutputFigures(
        case=case.name,
        output=item.output,
        dtype=item.dtype,
        shape=item.shape,
        dims=case.dims,
        status="fail" if exact.differ else "pass",
        against="exact",
        max_abs=exact.max_abs,
        max_abs_at=exact.at or None,
        beyond=exact.differ / exact.count if exact.count else 0.0,
        note="; ".join(notes),
    )


def broken_row(case: Case, item: OutputComparison) -> OutputFigures:
    """An output that did not come to its values."""
    return OutputFigures(
        case=case.name,
        output=item.output,
        dtype=item.dtype,
        shape=item.shape,
        dims=case.dims,
        status=item.fault.status if item.fault else "error",
        against="exact",
        note=f"{item.fault.rule}: {item.fault.text}" if item.fault else "",
    )
