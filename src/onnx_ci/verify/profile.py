"""What nodes take, from ONNX Runtime's profile: for attribution, never for latency."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnx_ci.runtime.placement import PlacedNode


@dataclass(frozen=True, slots=True)
class NodeCost:
    """A node as it ran after the runtime's optimization; the mean over the later half of the runs."""

    name: str
    op: str
    provider: str
    microseconds: float


def costs(profile: Path) -> list[NodeCost]:
    """Every node that ran, the slowest first; empty when the profile holds no run."""
    events, runs = _read(profile)
    spent: dict[tuple[str, str, str], float] = {}
    for event in events:
        if event.get("cat") != "Node" or not _name(event):
            continue
        start, end = _span(event)
        if any(first <= start <= last for first, last in runs):
            given = event.get("args", {})
            key = (_name(event), str(given.get("op_name", "")), str(given.get("provider", "")))
            spent[key] = spent.get(key, 0.0) + end - start
    found = [NodeCost(*key, microseconds=total / len(runs)) for key, total in spent.items()]
    return sorted(found, key=lambda one: -one.microseconds)


def nodes(profile: Path) -> list[PlacedNode]:
    """Every node that ran, once, with the provider it ran on; fusion may have given it another name."""
    return [PlacedNode(one.name, one.op, one.provider) for one in costs(profile)]


def share_of(profile: Path, strays: Collection[PlacedNode], provider: str) -> float | None:
    """The part of the wall time of whole runs that these nodes took on other providers than the asked one, 0 to 1.

    Whole runs, not the sum over nodes: a GPU's node ends in the profile when it is launched. The first half of the
    runs is left out, since devices tune themselves there. Fusion lengthens names, so a name counts as a start too.

    Returns:
        None when the profile holds no run.
    """
    events, runs = _read(profile)
    total = sum(end - start for start, end in runs)
    if total <= 0:
        return None
    names = {node.name for node in strays if node.name}
    operators = {node.op.rpartition(":")[2] for node in strays if not node.name}
    strayed = 0.0
    for event in events:
        if event.get("cat") != "Node" or not _name(event) or event.get("args", {}).get("provider") == provider:
            continue
        start, end = _span(event)
        named = any(_name(event) == name or _name(event).startswith(f"{name}_") for name in names)
        nameless = event["args"].get("op_name") in operators
        if (named or nameless) and any(first <= start <= last for first, last in runs):
            strayed += end - start
    return strayed / total


def device_peak(profile: Path, provider: str) -> int | None:
    """The most bytes that ONNX Runtime's allocator for a provider had given out, weights included; None where it does
    not tell, as before 1.32.
    """
    events, _ = _read(profile)
    told = [event.get("args", {}) for event in events if event.get("cat") == "Node" and _name(event)]
    sizes = [str(one.get("mem_in_use_peak", "")) for one in told if one.get("provider") == provider]
    return max((int(size) for size in sizes if size.isdecimal()), default=None)


def _read(profile: Path) -> tuple[list[dict[str, Any]], list[tuple[float, float]]]:
    """All events, and the spans of the later half of the runs."""
    events = [event for event in json.loads(profile.read_text(encoding="utf-8")) if isinstance(event, dict)]
    runs = sorted(_span(event) for event in events if event.get("name") == "model_run")
    return events, runs[len(runs) // 2 :]


def _span(event: dict[str, Any]) -> tuple[float, float]:
    start = float(event.get("ts", 0))
    return start, start + float(event.get("dur", 0))


def _name(event: dict[str, Any]) -> str:
    name = str(event.get("name", ""))
    return name.removesuffix("_kernel_time") if name.endswith("_kernel_time") else ""
