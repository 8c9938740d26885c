"""Calls that start from the same place in every random generator: what still differs is not chance."""

from __future__ import annotations

import torch

from onnx_ci.export import arguments, state
from onnx_ci.export.types import Call, Outputs


def run(module: torch.nn.Module, call: Call, seed: int = 0) -> Outputs:
    """Calls the module with all generators seeded."""
    state.seed(seed)
    return arguments.copied(arguments.call(module, call))


def drew() -> bool:
    """Whether a random number was drawn since `run` seeded with 0."""
    now = state.RandomState.now()
    state.seed(0)
    drawn = now.moved()
    now.restore()
    return drawn
