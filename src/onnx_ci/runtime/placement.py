"""Where ONNX Runtime put each node, and which nodes have no business there: one rule for what is judged and served."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from onnx_ci.records.model import CPU, TargetSpec

_SHAPES_ALONE = ("Shape", "Size", "Constant")
"""Operators that are shape arithmetic by themselves."""


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A node as the runtime placed it, after its basic optimization; the name may be empty or its own.

    Attributes:
        op: As `cpu_ops` lists it: with its domain where that is not ai.onnx.
    """

    name: str
    op: str
    provider: str


def recorded(session: Any) -> list[PlacedNode] | None:
    """Each node's provider by an onnxruntime.InferenceSession's own record; None where it keeps none."""
    read = getattr(session, "get_provider_graph_assignment_info", None)
    if read is None:
        return None
    try:
        parts = read()
    except Exception:  # recorded only by versions that know the option
        return None
    return [
        PlacedNode(node.name, f"{node.domain}:{node.op_type}" if node.domain else node.op_type, part.ep_name)
        for part in parts
        for node in part.get_nodes()
    ]


def elsewhere(nodes: Sequence[PlacedNode], target: TargetSpec, shape_nodes: Collection[str]) -> list[PlacedNode]:
    """The nodes beside shape arithmetic that are not on the provider that was asked for; none on a target of the CPU.

    Args:
        nodes: As they were placed.
        target: Where the model is to run.
        shape_nodes: Names of nodes that are shape arithmetic.
    """
    return [
        node
        for node in nodes
        if target.provider != CPU
        and node.provider != target.provider
        and node.name not in shape_nodes
        and node.op not in _SHAPES_ALONE
    ]
