"""Leaves a module and the random generators as they were found, however often forward is called."""

from __future__ import annotations

import contextlib
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.modules.lazy import LazyModuleMixin


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


def digest(module: torch.nn.Module) -> str:
    """Of all parameters and buffers, with their names: whether two loads of an entrypoint gave the same module."""
    found = hashlib.sha1(usedforsecurity=False)
    for name, value in (*module.named_parameters(), *module.named_buffers()):
        found.update(f"{name} {content(value)}\n".encode())
    return found.hexdigest()


def content(value: torch.Tensor) -> tuple[str, tuple[int, ...], str] | None:
    """Dtype, shape and a digest of the bytes; None for a layout without plain bytes.

    SHA-1 since most processors have it built in: half a gigabyte of weights is read for each digest.
    """
    try:
        plain = value.detach().to("cpu").contiguous().reshape(-1)
        read = hashlib.sha1(plain.view(torch.uint8).numpy().data, usedforsecurity=False)
    except (RuntimeError, TypeError, NotImplementedError):
        return None
    return str(value.dtype), tuple(value.shape), read.hexdigest()


def seed(number: int) -> None:
    """Seeds all three generators."""
    torch.manual_seed(number)
    np.random.seed(number)
    random.seed(number)


_CLOSED = (LazyModuleMixin, torch.jit.ScriptModule)
"""Modules whose attributes can't be put back."""


@contextlib.contextmanager
def preserved(module: torch.nn.Module) -> Iterator[dict[str, torch.Tensor]]:
    """Puts buffers, attributes and random generators back at the end; gives the buffers' values at the beginning.

    Attributes matter because a cache that forward keeps for the size it saw last would tie an export to that size.
    """
    kept = [_Attributes.of(part) for part in module.modules() if not isinstance(part, _CLOSED)]
    buffers = {name: buffer for name, buffer in module.named_buffers() if buffer is not None}
    values = {name: buffer.detach().clone() for name, buffer in buffers.items()}
    state = RandomState.now()
    try:
        yield values
    finally:
        state.restore()
        restore_buffers(module, buffers, values)
        for one in kept:
            one.restore()


@dataclass(frozen=True, slots=True)
class _Attributes:
    """What hangs on one module beside its parameters and submodules: which buffers it has, and all else."""

    part: torch.nn.Module
    values: dict[str, Any]
    contents: dict[str, Any]
    buffers: dict[str, torch.Tensor | None]

    @classmethod
    def of(cls, part: torch.nn.Module) -> _Attributes:
        values = dict(vars(part))
        contents = {name: value.copy() for name, value in values.items() if type(value) in (dict, list, set)}
        return cls(part, values, contents, dict(part._buffers))

    def restore(self) -> None:
        now = vars(self.part)
        for name in now.keys() - self.values.keys():
            del now[name]
        now.update(self.values)
        for name, before in self.contents.items():
            held = now[name]
            held.clear()
            held.extend(before) if isinstance(held, list) else held.update(before)
        self.part._buffers.clear()
        self.part._buffers.update(self.buffers)


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
