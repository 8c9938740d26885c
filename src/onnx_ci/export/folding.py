"""What a graph does with its weights before anything else: which it only moves, and which a folded norm goes into.

The optimizer computes whatever hangs on constants alone. Of a weight norm it leaves one constant, at a fresh start with
the very bytes of the weight that went in, and rounded all the same: the bytes do not tell, the graph before does.
"""

from __future__ import annotations

from collections.abc import Collection

import onnx
from onnx import AttributeProto

_ORDERS = "Cast Concat Expand Flatten Gather Identity Reshape Slice Split Squeeze Tile Transpose Unsqueeze"
_MOVES = frozenset(_ORDERS.split())
_NONE: frozenset[str] = frozenset()


def moved(graph: onnx.GraphProto) -> set[str]:
    """Initializers that a node beside other values reads as they are, or in another order or shape.

    What only others are computed from is not among them.
    """
    found: set[str] = set()
    _follow(graph, {}, found)
    return found


def absorbing(graph: onnx.GraphProto, kept: Collection[str]) -> set[str]:
    """Initializers into which the optimizer folded a batch norm: it writes the product under the weight's own name.

    Args:
        graph: Before the optimizer.
        kept: Names of the constants after it.
    """
    made_by = {name: node for node in graph.node for name in node.output}
    norms = [node for node in graph.node if node.op_type == "BatchNormalization" and not {*node.input[1:]} <= {*kept}]
    return {name for norm in norms if norm.input[0] in made_by for name in made_by[norm.input[0]].input[1:]}


def _follow(graph: onnx.GraphProto, known: dict[str, frozenset[str]], found: set[str]) -> None:
    """Adds to `found`; `known` holds, by name of each value that hangs on constants alone, what it is an order of."""
    known |= {item.name: frozenset([item.name]) for item in graph.initializer}
    for node in graph.node:
        graphs = [item.g for item in node.attribute if item.type == AttributeProto.GRAPH]
        for inner in graphs:
            _follow(inner, dict(known), found)
        read = [name for name in node.input if name]
        whole = frozenset().union(*(known.get(name, _NONE) for name in read))
        if graphs or not all(name in known for name in read):
            found |= whole
        else:
            known |= dict.fromkeys(node.output, whole if node.op_type in _MOVES else _NONE)
    found |= _NONE.union(*(known.get(item.name, _NONE) for item in graph.output))
