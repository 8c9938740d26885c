"""The promised output sizes, evaluated at each case, against the shapes that PyTorch and the target gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnx_ci.artifact import layout
from onnx_ci.numerics.comparison import CaseComparison
from onnx_ci.records import expression
from onnx_ci.records.cases import Case
from onnx_ci.records.contract import Contract, DimContract
from onnx_ci.records.expression import ExpressionError
from onnx_ci.records.result import Finding, finding
from onnx_ci.verify.dims import Tensor

_RULE = "contract.output-shape"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Wrong:
    case: str
    text: str
    sure: bool


def judge(
    contract: Contract, outputs: Sequence[Tensor], cases: Sequence[Case], compared: Sequence[CaseComparison]
) -> list[Finding]:
    """One finding for each output whose promise is broken, else one for all.

    Cases outside the promised ranges are left out, and axes whose size only the data tell.

    Args:
        contract: The promise.
        outputs: As the file itself has them.
        cases: With the shapes that PyTorch gave.
        compared: The cases that ran on the target, with the shapes that it gave; empty where none did.
    """
    known = [case for case in cases if not (case.refused or case.is_special) and _inside(case, contract.dims)]
    on_target = _given(compared)
    by_name = {item.name: item for item in outputs}
    found: list[Finding] = []
    evaluated = 0
    for promised in contract.outputs:
        wrong: list[_Wrong] = []
        file = by_name.get(promised.name)
        for shape, whose in ((promised.shape, layout.CONTRACT), (file.shape if file else None, "the file")):
            for case in known:
                count, said = _compare(shape, whose, case, promised.name, on_target)
                evaluated += count
                wrong += said
        if wrong:
            found.append(_finding(contract, promised.name, wrong, len(known)))
    if found:
        return found
    if not evaluated:
        return [finding(_RULE, "pass", "", "no output has a size that could be evaluated at a case")]
    return [finding(_RULE, "pass", "", f"the promised output sizes are those of {len(known)} cases")]


def _compare(
    shape: Sequence[int | str | None] | None,
    whose: str,
    case: Case,
    name: str,
    on_target: Mapping[tuple[str, str], tuple[list[int], bool]],
) -> tuple[int, list[_Wrong]]:
    """How many axes could be evaluated, and what is wrong with them; the first wrong axis of a shape is told."""
    if shape is None:
        return 0, []
    sizes = [_size(axis, case.dims) for axis in shape]
    seen = {"PyTorch": ([item.shape for item in case.outputs if item.name == name], True)}
    if (case.name, name) in on_target:
        given, sure = on_target[case.name, name]
        seen["the target"] = ([given], sure)
    count = sum(size is not None for size in sizes)
    for who, (shapes, sure) in seen.items():
        for real in shapes:
            if len(real) != len(sizes):
                text = f"{whose} promises {len(sizes)} axes and {who} gives {len(real)} in {_where(case)}"
                return count, [_Wrong(case.name, text, sure)]
            for at, (size, have) in enumerate(zip(sizes, real, strict=True)):
                if size is not None and size != have:
                    axis = shape[at]
                    means = f"{axis}, that is {size}," if axis != size else f"{size}"
                    text = f"{whose} promises {means} for axis {at}, and {who} gives {have} in {_where(case)}"
                    return count, [_Wrong(case.name, text, sure)]
    return count, []


def _finding(contract: Contract, name: str, wrong: Sequence[_Wrong], total: int) -> Finding:
    cases = list(dict.fromkeys(one.case for one in wrong))
    # The older exporter takes the names of output dims from the user, who may well name an axis for what it stems from.
    sure = any(one.sure for one in wrong) and contract.exporter != "torchscript"
    first = next((one for one in wrong if one.sure), wrong[0])
    return finding(
        _RULE, "fail" if sure else "warn", name,
        f"{name}: {first.text}; wrong in {len(cases)} of {total} cases",
        hint="A size became a constant of the example's in the graph, or was computed otherwise than in forward: look "
        "for pooling, views and interpolation to a size that is computed in Python.",
        data={"cases": cases, "texts": [one.text for one in wrong[:_SHOWN]]},
    )  # fmt: skip


def _given(compared: Sequence[CaseComparison]) -> dict[tuple[str, str], tuple[list[int], bool]]:
    """The target's shapes by case and output; unsure are those that hang on rounding in PyTorch itself."""
    return {
        (one.case.name, item.output): (item.given, item.fault is None or item.fault.status == "fail")
        for one in compared
        for item in one.outputs
        if item.given is not None
    }


def _inside(case: Case, dims: Mapping[str, DimContract]) -> bool:
    return all(
        dim.min <= case.dims[name] and (dim.max is None or case.dims[name] <= dim.max)
        for name, dim in dims.items()
        if name in case.dims
    )


def _size(axis: int | str | None, dims: Mapping[str, int]) -> int | None:
    """The size of an axis at these dims; None where it can't be told."""
    if axis is None or isinstance(axis, int):
        return axis
    try:
        return expression.parse(axis)(dims)
    except ExpressionError:
        return None


def _where(case: Case) -> str:
    dims = ", ".join(f"{name} {size}" for name, size in case.dims.items())
    return f"{case.name} ({dims})" if dims else case.name
