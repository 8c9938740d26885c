"""Asks where each node runs: the session's own record; where there is none, a probe; where that fails, a profile."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import onnx

from onnx_ci.artifact import dataflow
from onnx_ci.errors import OnnxCiError
from onnx_ci.records.cases import Case
from onnx_ci.records.model import CPU
from onnx_ci.records.result import Finding
from onnx_ci.records.source_map import Origin
from onnx_ci.runtime.placement import PlacedNode
from onnx_ci.verify import bench, parity, placement, profile
from onnx_ci.verify.opener import Opener
from onnx_ci.verify.placement import Witness
from onnx_ci.verify.session import RuntimeFault

_PROFILED_RUNS = 12
Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class _Told:
    """Where nodes run, and what told it; None where nothing does."""

    nodes: list[PlacedNode] | None
    witness: Witness


def judge(
    recorded: list[PlacedNode] | None,
    opener: Opener,
    model: onnx.ModelProto,
    cases: Sequence[Case],
    origins: Mapping[str, Origin],
) -> list[Finding]:
    """The findings on where each node runs.

    Args:
        recorded: As the session tells it; None where this ONNX Runtime does not.
        opener: Of the file on the target.
        model: The same file.
        cases: What can be run for a profile.
        origins: Source lines by name of the node.
    """
    target = opener.target
    shape_nodes = dataflow.shape_arithmetic(model) if target.provider != CPU else set()
    told = _Told(recorded, "assignment") if recorded is not None else _ask(opener, cases)
    strays = placement.sort_nodes(told.nodes or [], target, shape_nodes).strays
    share = None
    if strays and target.fallback == "forbid":
        share = _profiled(opener, cases, lambda path: profile.share_of(path, strays, target.provider))
    return placement.judge(told.nodes, target, shape_nodes, share, origins, told.witness)


def _ask(opener: Opener, cases: Sequence[Case]) -> _Told:
    if opener.target.provider == CPU or _opens_without_cpu(opener):
        return _Told([], "probe")
    return _Told(_profiled(opener, cases, profile.nodes) or None, "profile")


def _opens_without_cpu(opener: Opener) -> bool:
    """Whether a session that may not use the CPU opens: not one node is left to it then, shape arithmetic included."""
    try:
        session = opener.open(forbid_cpu=True)
    except RuntimeFault:
        return False
    active = session.active
    session.close()
    return opener.target.provider in active


def _profiled(opener: Opener, cases: Sequence[Case], read: Callable[[Path], Read]) -> Read | None:
    """What is read from a profile of the example; None where it can't be had."""
    case = bench.pick_case(cases)
    if case is None:
        return None
    try:
        with tempfile.TemporaryDirectory(prefix="onnx-ci-profile-") as folder:
            session = opener.open(profile=Path(folder) / "run")
            feeds, _ = parity.feeds_for(session, parity.read_inputs(opener.artifact, case))
            for _ in range(_PROFILED_RUNS):
                session.run(feeds)
            return read(session.end_profiling())
    except (RuntimeFault, OnnxCiError, OSError, ValueError):
        return None
