"""Stage golden: are the outputs still those that were reviewed? Compares only; nothing is written here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from onnx_ci.artifact import golden, tensors
from onnx_ci.artifact.golden import Golden
from onnx_ci.artifact.layout import ArtifactError
from onnx_ci.numerics.golden import GoldenComparison, compare_golden, judge_golden
from onnx_ci.numerics.parity import largest_magnitude
from onnx_ci.numerics.words import some
from onnx_ci.records.changes import changes
from onnx_ci.records.contract import Contract
from onnx_ci.records.model import ParitySpec
from onnx_ci.records.result import Finding, finding
from onnx_ci.verify.parity import feeds_for
from onnx_ci.verify.scores import InnerScores
from onnx_ci.verify.session import RuntimeFault, Session

_ACCEPT = "Review the outputs, then run `onnx-ci golden accept --model {name}` and commit the folder."


def absent(name: str, all_goldens: Path, models: Sequence[str] = (), contract: Contract | None = None) -> Finding:
    """Says that a model has no golden: a warning only where other models have theirs.

    A golden that belongs to no model and was accepted for just these inputs and outputs is this model's under another
    name: whoever renamed either took the guard away, so that fails.

    Args:
        name: ``model[@variant]``.
        all_goldens: The folder of all goldens.
        models: The names of all models in the config; empty where they are not known, and then nobody's golden can be
            told.
        contract: Of the artifact; None where it can't be read.
    """
    hint = _ACCEPT.format(name=name)
    nobodys = golden.orphans(all_goldens, models) if models else []
    renamed = [other for other in nobodys if contract is not None and _fits(all_goldens / other, contract)]
    if renamed:
        stored = f"{all_goldens.as_posix()}/{renamed[0]}"
        return finding(
            "golden.missing",
            "fail",
            name,
            f"{name} has no golden, and the golden {renamed[0]}, of no model in the config, has its inputs and "
            f"outputs: the golden of {name} looks renamed to {renamed[0]}, and guards nothing",
            hint=f"Rename the folder {stored} to {name}; if the model behind it is gone, delete it.",
            data={"orphaned": renamed},
        )
    others = golden.orphans(all_goldens, [])
    if others:
        message = f"{name} has no golden, {len(others)} others have ({', '.join(others[:3])})"
        return finding("golden.missing", "warn", name, message, hint=hint)
    return finding("golden.missing", "skip", name, "no goldens are kept in this repository", hint=hint)


def _fits(folder: Path, contract: Contract) -> bool:
    """Whether a golden was accepted for a model with the inputs and outputs of this one, by name and in order."""
    try:
        stored = golden.read(folder).contract
    except ArtifactError:
        return False
    now = golden.promise(contract)
    return all(golden.names(stored, side) == golden.names(now, side) != [] for side in ("inputs", "outputs"))


def judge(
    session: Session,
    folder: Path,
    contract: Contract,
    spec: ParitySpec,
    who: str,
    name: str,
    inner: InnerScores | None = None,
) -> list[Finding]:
    """Runs the stored inputs in a session and compares with the stored outputs.

    Args:
        session: On the target.
        folder: The golden of this model.
        contract: Of the artifact.
        spec: For ties.
        who: Name of the target.
        name: ``model[@variant]``.
        inner: Scores inside the graph, for indices that flipped since.
    """
    try:
        stored = golden.read(folder)
    except ArtifactError as error:
        message = f"the golden can't be read: {error.what}"
        return [finding("golden.unreadable", "error", name, message, hint=error.hint)]
    changed = changes(stored.contract, golden.promise(contract))
    if changed:
        return [_stale(name, changed, stored)]
    comparisons: list[GoldenComparison] = []
    problems = _made_otherwise(name, stored, contract)
    for case in stored.cases:
        try:
            comparisons += _compare(session, folder / f"test_data_set_{case.index}", case, spec, who, inner)
        except ArtifactError as error:
            message = f"{case.name}: the golden can't be read: {str(error).replace(f'{folder}{os.sep}', '')}"
            problems.append(finding("golden.unreadable", "error", name, message, hint=error.hint))
        except RuntimeFault as fault:
            problems.append(_stopped(fault, case.name, name))
    if inner is not None:
        inner.close()
    if not stored.cases:
        message = "the golden holds no case"
        problems.append(finding("golden.unreadable", "error", name, message, hint=_ACCEPT.format(name=name)))
    return problems + (judge_golden(comparisons) if comparisons else [])


def _compare(
    session: Session, where: Path, case: golden.GoldenCase, spec: ParitySpec, who: str, inner: InnerScores | None
) -> list[GoldenComparison]:
    inputs, reviewed = tensors.read_values(where, "input"), tensors.read_values(where, "output")
    if not reviewed:
        raise ArtifactError("it has no outputs", where=where.name, hint="Accept the golden again.")
    feeds, _ = feeds_for(session, inputs)
    actual = session.run(feeds)
    unsure = set(case.nondeterministic)  # PyTorch itself gives these anew in every call
    compare = partial(
        compare_golden,
        case.name,
        {name: value for name, value in reviewed.items() if name not in unsure},
        {name: value for name, value in actual.items() if name not in unsure},
        who=who,
        e_torch=case.e_torch,
        spec=spec,
        dims=case.dims,
        orders=case.orders,
        unit=largest_magnitude(inputs),
    )
    found = compare()
    drifted = [one.output for one in found if one.problem]
    scores = inner.of(drifted, feeds) if inner is not None and spec.ties == "explain" and drifted else {}
    return compare(inner=scores) if any(scores.values()) else found


def _stale(name: str, changed: Sequence[str], stored: Golden) -> Finding:
    return finding(
        "golden.stale",
        "fail",
        name,
        f"the golden was accepted for another contract: {some(changed, 3, '; ')}",
        hint=f"If the change is meant: {_ACCEPT.format(name=name)}",
        data={"changes": list(changed)[:50], "accepted_from": stored.artifact},
    )


def _made_otherwise(name: str, stored: Golden, contract: Contract) -> list[Finding]:
    """Warns where what the golden was made under has changed: whether its outputs still hold, comparing them tells."""
    changed = golden.moved(stored.made_under, golden.conditions(contract)) if stored.made_under is not None else []
    if not changed:
        return []
    return [
        finding(
            "golden.stale", "warn", name,
            f"the golden was accepted under other conditions: {some(changed, 3, '; ')}; "
            "its outputs are compared all the same",
            hint=_ACCEPT.format(name=name),
            data={"changes": changed[:50], "accepted_from": stored.artifact},
        )
    ]  # fmt: skip


def _stopped(fault: RuntimeFault, case: str, name: str) -> Finding:
    if fault.kind == "memory":
        message = f"{case}: not enough memory: {fault.message}"
        return finding("golden.unreadable", "error", name, message)
    message = f"{case}: the file does not run the reviewed inputs any more: {fault.message}"
    return finding("golden.drift", "fail", name, message, hint="An input of this size and dtype was once served.")
