"""How many floating-point operations one call takes: what tells whether a larger case can be afforded."""

from __future__ import annotations

import torch
from torch.utils.flop_counter import FlopCounterMode

from onnx_ci.export import arguments
from onnx_ci.export.state import preserved
from onnx_ci.export.types import Call


def count(module: torch.nn.Module, call: Call) -> float:
    """Of matrix products, convolutions and attention, counted in one call; 0 where it can't be told.

    Counted and not timed, so that equal sources give equal cases on any machine.
    """
    counter = FlopCounterMode(display=False)
    with preserved(module), counter:
        outputs = arguments.call(module, call)
    return 0.0 if outputs.error else float(counter.get_total_flops())
