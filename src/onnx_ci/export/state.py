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

from onnx_ci.export import arguments
from onnx_ci.export.kept import Kept
from onnx_ci.export.types import Call, Outputs


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


@contextlib.contextmanager
def preserved(module: torch.nn.Module, *, weights: bool = False) -> Iterator[Kept]:
    """Puts buffers, attributes and random generators back at the end; gives what tells the changes until then.

    With `weights` parameters are put back too, for which they are copied; see `Kept`.
    """
    kept = Kept(module, weights=weights)
    state = RandomState.now()
    try:
        yield kept
    finally:
        state.restore()
        kept.restore()


def answer(module: torch.nn.Module, call: Call) -> Outputs:
    """What a module gives, for keeping; it is left as it was, though an output may be a buffer that is put back."""
    with preserved(module):
        return arguments.copied(arguments.call(module, call))
