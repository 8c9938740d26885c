"""Rows of a batch in the file: where PyTorch keeps them apart, so must the file, in parts and in another order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onnx_ci.artifact.tensors import Value
from onnx_ci.numerics import parity
from onnx_ci.numerics.comparison import OutputComparison
from onnx_ci.numerics.dtypes import float_dtype_named
from onnx_ci.records.cases import BatchIdentity, Case, CaseList
from onnx_ci.records.model import ParitySpec
from onnx_ci.records.result import Finding, OutputFigures, Status, finding

SPLIT, PERMUTED = "contract.batch-split", "contract.batch-permuted"
Outputs = Mapping[str, Value]
_BOTH = 2.0
"""Each of two answers may err by what parity allows, so that they may be twice as far from each other."""


_HINT = (
    "A size of the batch became a constant of the graph: look for len(x), int(x.shape[0]) or a loop over rows in "
    "forward."
)


@dataclass(frozen=True, slots=True)
class _Rule:
    """One of the two identities.

    Attributes:
        cases: Beside the whole batch.
        outputs: Those for which PyTorch has the identity.
        put: From an output of the cases and of the whole: what is expected, and what there is.
    """

    name: str
    said: str
    cases: list[Case]
    outputs: list[str]
    put: Callable[[list[Value], Value], tuple[Value, Value]]


def judge(
    listed: CaseList,
    answer: Callable[[Case], Outputs | str | None],
    spec: ParitySpec,
    figures: Sequence[OutputFigures],
) -> list[Finding]:
    """Judges both identities on the target.

    Args:
        listed: The cases, and what the export found of the module's rows.
        answer: What the target answers to a case, what it said where it stops, or None where nothing can be told.
        spec: For tolerances and ties.
        figures: Of parity, for what each output may err.
    """
    identity = listed.batch
    if identity is None:
        return []
    if identity.whole is None or identity.permuted is None or not identity.parts:
        why = identity.not_held.get("") or _reasons(identity) or "no batch was tried at export"
        return [finding(rule, "skip", identity.dim, why) for rule in (SPLIT, PERMUTED)]
    by_index = {case.index: case for case in listed.cases}
    whole, permuted = by_index[identity.whole], by_index[identity.permuted]
    parts = [by_index[at] for at in identity.parts]
    rows = "+".join(str(case.dims[identity.dim]) for case in parts)
    rules = [
        _Rule(
            SPLIT, f"the rows of {identity.dim} in parts ({rows}) are those of the whole", parts, identity.split,
            lambda given, all_rows: (_joined(given), all_rows),
        ),
        _Rule(
            PERMUTED, f"the rows of the outputs move with those of {identity.dim}", [permuted], identity.permutes,
            lambda given, all_rows: (_moved(all_rows, identity.order), given[0]),
        ),
    ]  # fmt: skip
    names = {case.name for case in (whole, permuted, *parts)}
    limits: dict[str, float] = {}
    for one in figures:
        if one.case in names:
            limits[one.output] = max(limits.get(one.output, 0.0), one.limit or 0.0)
    all_rows = answer(whole)
    return [_judge(rule, identity, whole, all_rows, answer, (spec, limits)) for rule in rules]


def _judge(
    rule: _Rule,
    identity: BatchIdentity,
    case: Case,
    whole: Outputs | str | None,
    answer: Callable[[Case], Outputs | str | None],
    allowed: tuple[ParitySpec, Mapping[str, float]],
) -> Finding:
    if not rule.outputs:
        return finding(rule.name, "skip", identity.dim, f"PyTorch itself does not have it: {_reasons(identity)}")
    if whole is None or isinstance(whole, str):
        return finding(rule.name, "skip", identity.dim, f"the target does not answer to {case.name}: {whole or '–'}")
    answers = [answer(part) for part in rule.cases]
    if any(one is None for one in answers):
        return finding(rule.name, "skip", identity.dim, "a case can't be read, or there is no memory for it")
    stopped = next((f"{part.name}: {one}" for part, one in zip(rule.cases, answers, strict=True) if _stops(one)), "")
    if stopped:
        said = f"in PyTorch {rule.said}, and the file stops: {stopped}"
        return finding(rule.name, "fail", identity.dim, said, hint=_HINT)
    given = [one for one in answers if one is not None and not isinstance(one, str)]
    absent = sorted({name for name in rule.outputs for one in [whole, *given] if name not in one})
    if absent:
        said = f"the file gives no output {', '.join(absent)}, as `parity.names` says"
        return finding(rule.name, "skip", identity.dim, said)
    pairs = {name: rule.put([one[name] for one in given], whole[name]) for name in rule.outputs}
    expected, actual = ({name: pair[at] for name, pair in pairs.items()} for at in (0, 1))
    compared = parity.compare_case(case, expected, actual, None, allowed[0])
    wrong = [(item, *told) for item in compared.outputs if (told := _wrong(item, allowed[1].get(item.output, 0.0)))]
    if not wrong:
        data = {"outputs": rule.outputs, "not_held": identity.not_held}
        return finding(rule.name, "pass", identity.dim, f"{rule.said}: {', '.join(rule.outputs)}", data=data)
    item, status, text = max(wrong, key=lambda one: one[1] == "fail")
    data = {"outputs": [one[0].output for one in wrong], "dim": identity.dim}
    said = f"in PyTorch {rule.said}, and not in the file: {item.output}: {text}"
    return finding(rule.name, status, item.output, said, hint=_HINT, data=data)


def _reasons(identity: BatchIdentity) -> str:
    return "; ".join(f"{name}: {said}" if name else said for name, said in identity.not_held.items())


def _stops(answer: Outputs | str | None) -> bool:
    return isinstance(answer, str)


def _wrong(item: OutputComparison, limit: float) -> tuple[Status, str] | None:
    """What is wrong, where neither the budget of parity nor the tolerance by dtype covers it."""
    if item.fault is not None:
        return item.fault.status, item.fault.text
    if item.exact is not None:
        return ("fail", f"{item.exact.differ} of {item.exact.count} values differ") if item.exact.differ else None
    floats, kind = item.floats, float_dtype_named(item.dtype)
    if floats is None or kind is None:
        return None
    allowed = _BOTH * max(limit, kind.floor)
    over = item.over_manual if item.over_manual is not None else item.over_default
    if floats.e_runtime <= allowed or (over is not None and over <= _BOTH):
        return None
    status: Status = "warn" if floats.absolute else "fail"
    return status, f"relL2 {floats.e_runtime:.3g}, allowed {allowed:.3g}"


def _joined(parts: Sequence[Value]) -> Value:
    """The rows of all parts; None, which is no output of PyTorch's, where they are not rows of one kind."""
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    tails = {part.shape[1:] if part.ndim else None for part in arrays}
    return np.concatenate(arrays) if len(arrays) == len(parts) and len(tails) == 1 and None not in tails else None


def _moved(whole: Value, order: Sequence[int]) -> Value:
    """The rows in another order; None where there are not so many."""
    rows = len(whole) if isinstance(whole, np.ndarray) and whole.ndim else 0
    return whole[np.asarray(order)] if isinstance(whole, np.ndarray) and rows == len(order) else None
