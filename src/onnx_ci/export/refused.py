"""Sizes inside a declared range that the module refuses: one finding for each dim, which names all that were tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from onnx_ci.records.result import Finding

RULE = "contract.declared-size"
_SHOWN = 8


def merged(findings: Sequence[Finding]) -> list[Finding]:
    """The same, with one of `contract.declared-size` where several fail for the same dims: one with a line, if any."""
    groups: dict[str, list[Finding]] = {}
    for one in findings:
        if one.rule == RULE and one.status == "fail":
            groups.setdefault(one.subject, []).append(one)
    kept = {id(_first(ones)): ones for ones in groups.values()}
    merged_away = {id(one) for ones in groups.values() for one in ones} - kept.keys()
    return [_merged(one, kept.get(id(one), [one])) for one in findings if id(one) not in merged_away]


def _first(ones: Sequence[Finding]) -> Finding:
    return next((one for one in ones if one.file), ones[0])


def _merged(first: Finding, ones: Iterable[Finding]) -> Finding:
    names = first.subject.split(", ")
    others = [one.data["dims"] for one in ones if one is not first and {*names} <= {*one.data.get("dims", ())}]
    also = list(dict.fromkeys(tuple(dims[name] for name in names) for dims in others))
    if not also:
        return first
    sizes = [", ".join(f"{name} = {size}" for name, size in zip(names, at, strict=True)) for at in sorted(also)]
    more = f" and at {len(sizes) - _SHOWN} more sizes" if len(sizes) > _SHOWN else ""
    told = f"{first.message}; so it does at {'; '.join(sizes[:_SHOWN])}{more}"
    return replace(first, message=told, data={**first.data, "also": [dict(zip(names, at, strict=True)) for at in also]})
