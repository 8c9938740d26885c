"""Stage contract: ends of declared ranges that no case reaches, and whether anything else stands for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from onnx_ci.records import expression
from onnx_ci.records.cases import CaseList
from onnx_ci.records.contract import Contract, DimContract
from onnx_ci.records.expression import ExpressionError
from onnx_ci.records.model import DimSpec
from onnx_ci.records.result import Finding, finding

RULE = "contract.untested"


@dataclass(frozen=True, slots=True)
class _End:
    """One end of a declared range that no case reaches."""

    dim: str
    which: str
    declared: int
    tried: list[int]
    reason: str

    def text(self) -> str:
        """What is declared, and how near the cases come: "batch is declared up to 100000; the largest … is 341"."""
        up = self.which == "max"
        told = f"{self.dim} is declared {'up to' if up else 'from'} {self.declared}"
        told += f"; the {'largest' if up else 'smallest'} size tried is {max(self.tried) if up else min(self.tried)}"
        return told + (f", {self.reason}" if self.reason else "")


def judge(contract: Contract, listed: CaseList, declared: Mapping[str, DimSpec]) -> list[Finding]:
    """One finding for each dim with an untried end, else one for all.

    A range that did not hold at the capture is left out: `contract.range` speaks of it. So is an end that PyTorch
    itself refused, which was tried.

    Args:
        contract: With the dims' multiples, and how the program was captured.
        listed: The cases, with a note on each that was left out.
        declared: The dims as the config has them: only ends that it states are judged.
    """
    known = {name: contract.dims[name] for name in declared if name in _dims_of_inputs(contract)}
    found: list[Finding] = []
    stated = 0
    for name, dim in known.items():
        spec = declared[name]
        stated += (spec.min is not None) + (spec.max is not None)
        ends = list(_untried(name, dim, spec, listed)) if name not in contract.narrowed else []
        if ends:
            found.append(_finding(contract, ends))
    if found:
        return found
    message = f"cases reach all {stated} ends of the declared ranges" if stated else "no dim has a declared range"
    return [finding(RULE, "pass", "", message)]


def _untried(name: str, dim: DimContract, spec: DimSpec, listed: CaseList) -> Iterator[_End]:
    tried = [case.dims[name] for case in listed.cases if name in case.dims]
    if not tried:
        return  # what has no size in any case is no dim that a service can choose
    if spec.min is not None:
        least = -(-spec.min // dim.multiple_of) * dim.multiple_of
        if min(tried) > least:
            yield _End(name, "min", least, tried, _reason(name, "min", listed))
    if spec.max is not None:
        most = spec.max // dim.multiple_of * dim.multiple_of
        if max(tried) < most:
            yield _End(name, "max", most, tried, _reason(name, "max", listed))


def _finding(contract: Contract, ends: list[_End]) -> Finding:
    told = "; ".join(end.text() for end in ends)
    data = {end.which: {"declared": end.declared, "tried": sorted(set(end.tried))} for end in ends}
    nothing = _nothing_proves(contract)
    if not nothing:
        message = f"{told}; the capture's guards cover the rest"
        return finding(RULE, "pass", ends[0].dim, message, data=data)
    return finding(
        RULE,
        "warn",
        ends[0].dim,
        f"{told}; {nothing}, so nothing proves the rest",
        hint="Give that size a case of your own under `cases` (the budget holds for generated ones only), declare "
        "what production really sends, or export with the newer exporter, whose capture proves the whole range.",
        data=data,
    )


def _nothing_proves(contract: Contract) -> str:
    """Why the capture says nothing of sizes that were not tried; empty where it does."""
    if contract.exporter == "torchscript" or contract.strategy == "torchscript":
        return "the older exporter traces one example and keeps no guards"
    if not contract.strategy.startswith("own"):
        return "the capture's guards could not be read"
    return ""


def _reason(name: str, which: str, listed: CaseList) -> str:
    """Why the case at an end is not at it, in the words of the export."""
    left_out = re.compile(rf"case {re.escape(name)}-{which} was left out: (.+)")
    for note in listed.notes:
        if found := left_out.fullmatch(note):
            return f"since a larger case was left out: {found[1]}" if which == "max" else found[1]
    why = next((case.why for case in listed.cases if case.name == f"{name}-{which}"), "")
    return why.rpartition(", ")[2] if "budget" in why else ""


def _dims_of_inputs(contract: Contract) -> set[str]:
    found: set[str] = set()
    for item in contract.inputs:
        for axis in item.shape or []:
            if isinstance(axis, str):
                try:
                    found |= expression.parse(axis).names
                except ExpressionError:
                    continue
    return found & set(contract.dims)
