"""Which narrow floats a captured program computes with, so that others in its file can be told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

_WIDTH = torch.float32.itemsize


def halves(program: torch.export.ExportedProgram) -> list[str]:
    """Floats narrower than float32 among its weights, its values and what it casts to; regions of autocast included."""
    return sorted({str(dtype).removeprefix("torch.") for dtype in _floats(program) if dtype.itemsize < _WIDTH})


def _floats(program: torch.export.ExportedProgram) -> Iterator[torch.dtype]:
    told: list[Any] = [*program.state_dict.values(), *program.constants.values()]
    for part in program.graph_module.modules():
        if isinstance(part, torch.fx.GraphModule):
            told += [(node.meta.get("val"), node.args, node.kwargs) for node in part.graph.nodes]
    for leaf in pytree.tree_leaves(told):
        dtype = leaf.dtype if isinstance(leaf, torch.Tensor) else leaf
        if isinstance(dtype, torch.dtype) and dtype.is_floating_point:
            yield dtype
