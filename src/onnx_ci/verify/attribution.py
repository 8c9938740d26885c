"""Why a file takes longer than the base's: operators and nodes of both, base beside head, with source lines."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnx_ci.artifact.tensors import Value
from onnx_ci.records.source_map import Origin
from onnx_ci.verify import profile
from onnx_ci.verify.parity import feeds_for
from onnx_ci.verify.profile import NodeCost
from onnx_ci.verify.session import Session

Open = Callable[[Path, Path | None], Session]
"""Opens a file on the target, and writes a profile to where the second argument says."""

OVERHEAD = ("Transpose", "Cast", "Reshape", "Shape", "Gather", "Concat", "Unsqueeze", "Squeeze", "Slice", "Expand")
"""Operators that move numbers and compute none."""
_RUNS = 12
_MOST = 8


def profiled(open_file: Open, model: Path, inputs: Mapping[str, Value]) -> list[NodeCost]:
    """What each node of a file takes, from a session of its own that is profiled.

    Raises:
        RuntimeFault: It does not open or run.
    """
    with tempfile.TemporaryDirectory(prefix="onnx-ci-profile-") as folder:
        session = open_file(model, Path(folder) / "run")
        feeds, _ = feeds_for(session, inputs)
        for _ in range(_RUNS):
            session.run(feeds)
        return profile.costs(session.end_profiling())


def compare(head: Sequence[NodeCost], base: Sequence[NodeCost], origins: Mapping[str, Origin]) -> dict[str, Any]:
    """Counts and microseconds by operator, the most changed first; the hottest nodes of the head with their lines.

    Fusion counts: what ran is named, not what is in the file.
    """
    ours, theirs = _by_operator(head), _by_operator(base)
    names = sorted(ours.keys() | theirs.keys(), key=lambda op: -abs(_spent(ours, op) - _spent(theirs, op)))
    return {
        "operators": [
            {"op": op, "head": _count(ours, op), "base": _count(theirs, op),
             "head_us": round(_spent(ours, op), 1), "base_us": round(_spent(theirs, op), 1)}
            for op in names[:_MOST]
        ],
        "hottest": [_node(one, origins) for one in head[:_MOST]],
        "nodes": {"head": len(head), "base": len(base)},
        "overhead_us": {"head": round(_overhead(head), 1), "base": round(_overhead(base), 1)},
    }  # fmt: skip


def told(found: Mapping[str, Any]) -> str:
    """The operators that took most of the difference, in words; empty where none took more."""
    grown = [one for one in found["operators"] if one["head_us"] > one["base_us"]]
    parts = []
    for one in grown[:3]:
        count = f"{one['head']}" if one["head"] == one["base"] else f"{one['base']} → {one['head']}"
        parts.append(f"{count} × {one['op']} {one['base_us'] / 1000:.3g} → {one['head_us'] / 1000:.3g} ms")
    return ", ".join(parts)


def line_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """File and line of the hottest node, best of a kind that there is more of now; empty where no line is known."""
    grown = {one["op"] for one in found["operators"] if one["head"] > one["base"]}
    for one in [*(node for node in found["hottest"] if node["op"] in grown), *found["hottest"]]:
        if one.get("file"):
            return {"file": one["file"], "line": one["line"]}
    return {}


def _node(one: NodeCost, origins: Mapping[str, Origin]) -> dict[str, Any]:
    # A fused node's name holds that of a node it was made of; node_add_1 is not one that was made of node_add.
    known = max((name for name in origins if _holds(one.name, name)), key=len, default="")
    origin = origins.get(known)
    where = {"file": origin.file, "line": origin.line} if origin and origin.file else {}
    return {"node": one.name, "op": one.op, "us": round(one.microseconds, 1), **where}


def _holds(whole: str, name: str) -> bool:
    return bool(name) and name in whole and re.search(rf"{re.escape(name)}(?!_?\d)", whole) is not None


def _by_operator(nodes: Sequence[NodeCost]) -> dict[str, tuple[int, float]]:
    found: dict[str, tuple[int, float]] = {}
    for one in nodes:
        count, spent = found.get(one.op, (0, 0.0))
        found[one.op] = (count + 1, spent + one.microseconds)
    return found


def _count(found: Mapping[str, tuple[int, float]], op: str) -> int:
    return found[op][0] if op in found else 0


def _spent(found: Mapping[str, tuple[int, float]], op: str) -> float:
    return found[op][1] if op in found else 0.0


def _overhead(nodes: Sequence[NodeCost]) -> float:
    return sum(one.microseconds for one in nodes if one.op in OVERHEAD)
