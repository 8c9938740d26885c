"""Merges all results into one verdict. Pure, and it fails closed: what is not known to be well is not well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnx_ci.errors import ExitCode
from onnx_ci.records.contract import Contract
from onnx_ci.records.environment import Environment
from onnx_ci.records.report import SCHEMA_VERSION, Leg, Plan, Report, VersionChange
from onnx_ci.records.result import EXPORT_TARGET, Result, Status, finding, label, worst
from onnx_ci.report import contract_diff

Key = tuple[str, str]
_STATUS: dict[ExitCode, Status] = {ExitCode.BROKEN: "fail", ExitCode.UNKNOWN: "error"}


def merge(
    results: Sequence[Result],
    plan: Plan | None,
    problems: Sequence[str],
    base: Mapping[str, Contract] | None = None,
    notes: Sequence[str] = (),
    *,
    planned_only: bool = False,
) -> Report:
    """Merges results into a report, sorted by model and target ("export" first).

    A result's status is the worst of what it claims and of its findings. Whether a target is required is the plan's
    word where there is a plan.

    Args:
        results: What was read.
        plan: What was expected; without a plan nothing can be missing, but having no result at all is.
        problems: Why something could not be read, a sentence each.
        base: The contracts of the base's artifacts, by label; None without a base.
        notes: What to know besides.
        planned_only: Leave out what the plan does not name, as left by an earlier run with other models in the same
            folder; else it counts too, since a plan must not hide what broke.
    """
    legs = {(label(leg.model, leg.variant), leg.target): leg for leg in (plan.legs if plan else [])}
    unplanned = [result for result in results if plan and _key(result) not in legs]
    kept, doubled = _unique([one for one in results if not planned_only or one not in unplanned])
    judged = [_judged(_against(result, base or {}), legs.get(_key(result))) for result in kept]
    missing = sorted((leg for key, leg in legs.items() if key not in {_key(one) for one in judged}), key=_order)
    all_problems = [*problems, *doubled, *_other_bytes(judged), *_nothing(judged, plan)]
    code = _exit_code(judged, missing, all_problems)
    all_notes = [*notes, *_strangers(unplanned, left_out=planned_only), *_notes(judged, plan)]
    versions, changed = _changes(judged, {name: contract.environment for name, contract in (base or {}).items()})
    return Report(
        schema_version=SCHEMA_VERSION,
        status=_STATUS.get(code) or _mild(judged, missing),
        exit_code=int(code),
        results=sorted(judged, key=_order),
        missing=missing,
        problems=all_problems,
        notes=all_notes,
        versions=versions,
        changed=sorted({*changed, *_other_contracts(judged)}),
        new=sorted({_key(one)[0] for one in judged} - set(base)) if base else [],
        base=base is not None,
    )


def why_missing(leg: Leg, results: Sequence[Result]) -> str:
    """Why a leg has no result where that is known: it was off, or its model's export broke; "" where it is not.

    A leg without an artifact has nothing to judge, and the export that broke says so already.
    """
    return leg.not_run or ("nothing was exported" if _label(leg) in _broken_exports(results) else "")


def _exit_code(judged: Sequence[Result], missing: Sequence[Leg], problems: Sequence[str]) -> ExitCode:
    required = [one for one in judged if one.required]
    unexplained = [leg for leg in missing if leg.required and not why_missing(leg, judged)]
    broken_exports = _broken_exports(judged)
    idle = [one for one in required if one.status == "skip" and _key(one)[0] not in broken_exports]
    if problems or unexplained or idle or any(one.status == "error" for one in required):
        return ExitCode.UNKNOWN
    if any(one.status == "fail" for one in required):
        return ExitCode.BROKEN
    return ExitCode.PASS


def _mild(judged: Sequence[Result], missing: Sequence[Leg]) -> Status:
    return "warn" if missing or any(one.status not in ("pass", "skip") for one in judged) else "pass"


def _against(result: Result, base: Mapping[str, Contract]) -> Result:
    """An export with what its contract changes of the base's; one that made no artifact has nothing to compare."""
    before, after = base.get(_key(result)[0]), result.contract
    if result.target != EXPORT_TARGET or before is None or after is None:
        return result
    if (after.model, after.variant) != (result.model, result.variant) or after.schema_version != before.schema_version:
        other = f"{label(after.model, after.variant)}, schema version {after.schema_version}"
        found = [finding("contract.compatible", "skip", "", f"not compared: the result holds a contract of {other}")]
    else:
        found = contract_diff.judge(before, after)
    return replace(result, findings=[*result.findings, *found])


def _other_contracts(judged: Sequence[Result]) -> set[str]:
    return {_key(one)[0] for one in judged if one.target == EXPORT_TARGET and contract_diff.changes_of(one)}


def _judged(result: Result, leg: Leg | None) -> Result:
    statuses = [result.status, *(finding.status for finding in result.findings)]
    if result.status in ("pass", "warn") and not (result.findings or result.parity or result.stages):
        statuses.append("error")  # it says that all is well, and shows nothing that it looked at
    return replace(result, status=worst(statuses), required=leg.required if leg else result.required)


def _unique(results: Sequence[Result]) -> tuple[list[Result], list[str]]:
    first: dict[Key, Result] = {}
    for result in results:
        first.setdefault(_key(result), result)
    counts = Counter(_key(result) for result in results)
    doubled = [
        f"{model} on {target}: {number} results for one leg, which one counts can't be told"
        for (model, target), number in sorted(counts.items())
        if number > 1
    ]
    return list(first.values()), doubled


def _other_bytes(judged: Sequence[Result]) -> list[str]:
    exported = {_key(one)[0]: one.artifact for one in judged if one.target == EXPORT_TARGET}
    return [
        f"{model} on {target}: judged the artifact {one.artifact:.12}, but the export made {exported[model]:.12}"
        for one in sorted(judged, key=_order)
        for model, target in [_key(one)]
        if one.required and one.artifact and exported.get(model) and one.artifact != exported[model]
    ]


def _nothing(judged: Sequence[Result], plan: Plan | None) -> list[str]:
    return ["There is no result at all, and no plan that says that none was expected."] if not (judged or plan) else []


def _strangers(unplanned: Sequence[Result], *, left_out: bool) -> list[str]:
    names = ", ".join(f"{model} on {target}" for model, target in sorted({_key(result) for result in unplanned}))
    if not names:
        return []
    return [
        f"Left out, since this run's plan does not name it: {names}."
        if left_out
        else f"{names}: the plan does not name it."
    ]


def _notes(judged: Sequence[Result], plan: Plan | None) -> list[str]:
    found = []
    if plan and not plan.legs and not judged:
        found.append("No model was touched.")
    for one in sorted(judged, key=_order):
        name = f"{_key(one)[0]} on {one.target}"
        if not one.required and one.status in ("fail", "error"):
            found.append(f"{name}: not required, so what it found counts as a warning.")
    return found


def _changes(judged: Sequence[Result], base: Mapping[str, Environment]) -> tuple[list[VersionChange], list[str]]:
    changes: set[tuple[str, str | None, str | None]] = set()
    changed: set[str] = set()
    for one in judged:
        name = _key(one)[0]
        if one.target != EXPORT_TARGET or name not in base:
            continue
        before, after = _versions(base[name]), _versions(one.environment)
        found = {
            (package, before.get(package), after.get(package))
            for package in before.keys() | after.keys()
            if before.get(package) != after.get(package)
        }
        changes |= found
        if found:
            changed.add(name)
    ordered = sorted(changes, key=lambda change: (change[0], change[1] or "", change[2] or ""))
    return [VersionChange(package=name, base=old, head=new) for name, old, new in ordered], sorted(changed)


def _versions(environment: Environment) -> dict[str, str]:
    return {"python": environment.python, **environment.packages}


def _broken_exports(results: Sequence[Result]) -> set[str]:
    return {
        _key(one)[0]
        for one in results
        if one.target == EXPORT_TARGET and one.required and one.status == "fail" and one.artifact is None
    }


def _label(leg: Leg) -> str:
    return label(leg.model, leg.variant)


def _key(result: Result) -> Key:
    return label(result.model, result.variant), result.target


def _order(one: Result | Leg) -> tuple[str, bool, str]:
    return label(one.model, one.variant), one.target != EXPORT_TARGET, one.target
