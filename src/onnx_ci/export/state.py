"""Leaves a module and the random generators as they were found, however often forward is called."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True, slots=True)
class RandomState:
    """Where the generators stand that forward may draw from: torch's, numpy's and Python's."""

    torch: torch.Tensor
    numpy: Any
    python: Any

    @classmethod
    def now(cls) -> RandomState:
        """Reads them."""
        return cls(torch.get_rng_state(), np.random.get_state(), random.getstate())

    def restore(self) -> None:
        """Puts them back."""
        torch.set_rng_state(self.torch)
        np.random.set_state(self.numpy)
        random.setstate(self.python)

    def moved(self) -> bool:
        """Whether a random number was drawn since."""
        now = RandomState.now()
        one, other = self.numpy, now.numpy
        same_numpy = one[0] == other[0] and bool((one[1] == other[1]).all()) and one[2:] == other[2:]
        return not (torch.equal(self.torch, now.torch) and same_numpy and self.python == now.python)


def seed(number: int) -> None:
    """Seeds all three generators."""
    torch.manual_seed(number)
    np.random.seed(number)
    random.seed(number)


@contextlib.contextmanager
def preserved(module: torch.nn.Module) -> Iterator[dict[str, torch.Tensor]]:
    """Puts buffers and random generators back at the end; gives the buffers' values at the beginning."""
    buffers = {name: buffer for name, buffer in module.named_buffers() if buffer is not None}
    values = {name: buffer.detach().clone() for name, buffer in buffers.items()}
    state = RandomState.now()
    try:
        yield values
    finally:
        state.restore()
        restore_buffers(module, buffers, values)


def restore_buffers(module: torch.nn.Module, buffers: dict[str, torch.Tensor], values: dict[str, torch.Tensor]) -> None:
    """Puts each buffer back: the same tensor object, with its values of before."""
    now = dict(module.named_buffers())
    with torch.no_grad():
        for name, buffer in buffers.items():
            if not same_bits(buffer, values[name]):
                buffer.resize_(values[name].shape).copy_(values[name])
            if now.get(name) is not buffer:
                owner, _, leaf = name.rpartition(".")
                setattr(module.get_submodule(owner), leaf, buffer)


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether shape, dtype and all values are the same, NaN included."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(((one == other) | ((one != one) & (other != other))).all())
