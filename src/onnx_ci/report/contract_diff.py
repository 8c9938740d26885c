"""What changed in a model's contract against the base's, sorted by whom it breaks. Pure: two contracts to findings.

Breaking is what fails a service that did all right with the base's file. Where only its owners can tell (a newer opset,
another preprocessing file, a range that nobody declared) it may break; all else is compatible.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx_ci.records import codec
from onnx_ci.records.changes import changes, file_changes, said
from onnx_ci.records.contract import Contract
from onnx_ci.records.result import Finding, Result, Status, finding
from onnx_ci.report import contract_shapes, contract_tensors
from onnx_ci.report.contract_change import KINDS, Change, Kind, breaking, compatible, may_break

MOST = 60
"""Findings of one contract; what is beyond is counted."""
_AI_ONNX = ("", "ai.onnx")


def compare(base: Contract, head: Contract) -> list[Change]:
    """Every change, breaking ones first."""
    ins = contract_tensors.pair(base.inputs, head.inputs)
    outs = contract_tensors.pair(base.outputs, head.outputs)
    sizes, match = contract_shapes.inputs(base, head, ins)
    found = [
        *_version(base, head),
        *contract_tensors.inputs(base.inputs, head.inputs, ins),
        *sizes,
        *contract_tensors.outputs(base.outputs, head.outputs, outs),
        *contract_shapes.outputs(base, head, outs, match),
        *_promises(base, head),
        *_file(base, head),
    ]
    return sorted(found, key=lambda change: KINDS.index(change.kind))


def judge(base: Contract, head: Contract) -> list[Finding]:
    """The changes as findings of head's export; a single one that passes where there is none."""
    found = compare(base, head)
    if not found:
        return [finding("contract.compatible", "pass", "", "the contract is the base's")]
    old, new = base.contract_version, head.contract_version
    raised = f"contract_version was raised from {old} to {new}" if new > old else ""
    judged = [_finding(change, raised) for change in found[:MOST]]
    if len(found) > MOST:
        kind = found[MOST].kind
        judged.append(_finding(Change(kind=kind, subject="", message=f"{len(found) - MOST} more changes"), raised))
    return judged


def changes_of(export: Result) -> list[tuple[Kind, Finding]]:
    """The changes among an export's findings, each with whom it breaks, in the order of that."""
    rules = ("contract.breaking", "contract.compatible")
    found = [(one.data.get("kind"), one) for one in export.findings if one.rule in rules]
    return [(kind, one) for kind in KINDS for said, one in found if said == kind]


def _finding(change: Change, raised: str) -> Finding:
    statuses: dict[Kind, Status] = {"breaking": "warn" if raised else "fail", "may break": "warn", "compatible": "pass"}
    hints: dict[Kind, str] = {
        "breaking": "Restore it; or raise contract_version, which says that the break is meant.",
        "may break": "Ask those who run the model in production.",
        "compatible": "",
    }
    meant = change.kind == "breaking" and raised
    return finding(
        "contract.compatible" if change.kind == "compatible" else "contract.breaking",
        statuses[change.kind],
        change.subject,
        f"{change.message}; {raised}, so this is meant" if meant else change.message,
        hint="Tell those who run the model." if meant else hints[change.kind],
        data={"kind": change.kind, "change": change.message},
    )


def _version(base: Contract, head: Contract) -> Iterator[Change]:
    old, new = base.contract_version, head.contract_version
    if new < old:
        yield breaking("contract_version", f"contract_version was {old} and is {new}: it is only ever raised")


def _promises(base: Contract, head: Contract) -> Iterator[Change]:
    if base.batch != head.batch:
        message = f"batch was {base.batch} and is {head.batch}"
        if head.batch == "mixed":
            yield breaking("batch", f"{message}: a row's result may depend on the other rows now")
        else:
            yield compatible("batch", message)
    for name in sorted({*base.frozen, *head.frozen}):
        old, new = codec.encode(base.frozen.get(name)), codec.encode(head.frozen.get(name))
        if old == new:
            continue
        message = f"the argument {name}, frozen into the file, was {said(old)} and is {said(new)}"
        both = name in base.frozen and name in head.frozen
        yield breaking(name, message) if both else may_break(name, message)
    for message in changes(codec.encode(base.kwargs), codec.encode(head.kwargs), "kwargs."):
        yield may_break("kwargs", message)
    for message in file_changes(base.preprocessing, head.preprocessing):
        yield may_break("preprocessing", f"{message}: what prepares the inputs has to be the same file in production")


def _file(base: Contract, head: Contract) -> Iterator[Change]:
    yield from _raised("opset", base.opset, head.opset)
    yield from _raised("IR version", base.ir_version, head.ir_version)
    for domain in sorted({*base.domains, *head.domains} - {*_AI_ONNX}):
        old, new = base.domains.get(domain), head.domains.get(domain)
        if old is None:
            yield may_break("domains", f"the file has operators of {domain} now: the runtime has to know them")
        elif new is None:
            yield compatible("domains", f"the file has no operators of {domain} any more")
        else:
            yield from _raised(f"opset of {domain}", old, new)
    for what, before, after in (
        ("exporter", base.exporter, head.exporter),
        ("strategy", base.strategy, head.strategy),
    ):
        if before != after:
            yield compatible(what, f"the {what} was {before} and is {after}")


def _raised(what: str, old: int, new: int) -> Iterator[Change]:
    if new > old:
        yield may_break(what, f"the {what} was raised from {old} to {new}: the runtime in production has to read it")
    elif new < old:
        yield compatible(what, f"the {what} was lowered from {old} to {new}")
