"""What hangs on a module and may change when forward is called: read once, compared, and put back.

Beside buffers these are attributes, and what is inside the containers and plain objects among them: a cache that the
first call fills answers every later one, and would tie an export to the sizes it saw.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from types import NoneType
from typing import Any

import torch
from torch.nn.modules.lazy import LazyModuleMixin

_CLOSED = (LazyModuleMixin, torch.jit.ScriptModule)
"""Modules whose attributes can't be put back."""
_CONTAINERS = (dict, OrderedDict, defaultdict, list, deque, set)
_ATOMS = (str, int, float, complex, bool, bytes, NoneType)
_SHUT = sys.stdlib_module_names | {"torch", "numpy"}
"""Packages whose objects are not looked into: locks, loggers, compiled functions."""
_OF_TORCH = ("_parameters", "_buffers", "_modules")
_DEEPEST = 4
_LONGEST = 1000
"""Items of a container that is looked into further: a vocabulary is not."""
_MOST_WEIGHTS = 256 << 20
"""Bytes of parameters that are copied: of a larger model it would cost more than its forward."""
_GONE = object()


class Kept:
    """A module as it was.

    Args:
        module: To be read.
        weights: Whether the values of parameters are read too, where all together take no more than 256 MiB.
    """

    def __init__(self, module: torch.nn.Module, *, weights: bool = False) -> None:
        taken = sum(one.nbytes for one in module.parameters() if weights and _is_plain(one))
        self._module, self._weights = module, weights and taken <= _MOST_WEIGHTS
        self._buffers = {name: _Held(name, one, one.detach().clone()) for name, one in module.named_buffers()}
        self._tensors: list[_Held] = []
        self._holders: list[_Holder] = []
        self._seen = {id(one) for one in (*module.buffers(), *module.modules())}
        for name, part in module.named_modules():
            if not isinstance(part, _CLOSED):
                self._hold_module(part, f"{name}." if name else "", 0)

    def written(self) -> list[str]:
        """The buffers that have other values now."""
        now = dict(self._module.named_buffers())
        return [name for name, one in self._buffers.items() if name not in now or not same_bits(now[name], one.value)]

    def changed(self) -> list[str]:
        """What else is another thing than before, or has another content; a parameter only with `weights`."""
        found = [name for holder in self._holders for name in holder.changed()]
        found += [one.name for one in self._tensors if one.differs()]
        return [name for name in dict.fromkeys(found) if name not in self._buffers]

    def restore(self) -> None:
        """Puts all of it back: the same objects, with the content of before."""
        now = dict(self._module.named_buffers())
        for name, one in self._buffers.items():
            one.restore()
            if now.get(name) is not one.tensor:
                owner, _, leaf = name.rpartition(".")
                setattr(self._module.get_submodule(owner), leaf, one.tensor)
        for one in self._tensors:
            one.restore()
        for holder in self._holders:
            holder.restore()

    def _hold_module(self, part: torch.nn.Module, name: str, depth: int) -> None:
        own = vars(part)
        self._seen |= {id(own[key]) for key in _OF_TORCH}
        for held in (*(own[key] for key in _OF_TORCH), own):
            self._hold(held, name, depth, keyed=True)

    def _hold(self, held: Any, name: str, depth: int, *, keyed: bool) -> None:
        """Notes a container or the attributes of an object, and looks into them."""
        self._holders.append(_Holder(name, held, held.copy(), keyed))
        if len(held) > _LONGEST:
            return
        for key, value in held.items() if isinstance(held, dict) else [("", item) for item in held]:
            self._look(value, f"{name}{key}" if keyed else name, depth + 1)

    def _look(self, value: Any, name: str, depth: int) -> None:
        if isinstance(value, _ATOMS) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, torch.Tensor):
            if _is_plain(value) and (self._weights or not isinstance(value, torch.nn.Parameter)):
                self._tensors.append(_Held(name, value, value.detach().clone()))
        elif depth > _DEEPEST:
            return
        elif type(value) in _CONTAINERS:
            self._hold(value, name, depth, keyed=False)
        elif isinstance(value, tuple):
            for item in value:
                self._look(item, name, depth + 1)
        elif isinstance(value, torch.nn.Module):  # one that is not registered
            if not isinstance(value, _CLOSED):
                self._hold_module(value, f"{name}.", depth)
        elif _is_open(value):
            self._hold(vars(value), f"{name}.", depth, keyed=True)


@dataclass(frozen=True, slots=True)
class _Held:
    """A tensor with its values of before."""

    name: str
    tensor: torch.Tensor
    value: torch.Tensor

    def differs(self) -> bool:
        return not same_bits(self.tensor, self.value)

    def restore(self) -> None:
        if not self.differs():
            return
        with torch.no_grad():
            if self.tensor.grad_fn is not None:  # of what was written to it
                self.tensor.detach_()
            if self.tensor.shape != self.value.shape:
                self.tensor.resize_(self.value.shape)
            self.tensor.copy_(self.value)


@dataclass(frozen=True, slots=True)
class _Holder:
    """A container, or the attributes of an object, with what was in it; `keyed` where a report names its keys."""

    name: str
    held: Any
    before: Any
    keyed: bool

    def changed(self) -> list[str]:
        if isinstance(self.held, set):
            return [] if self.held == self.before else [self.name]
        same = len(self.held) == len(self.before) and all(map(_is, self.held, self.before))
        if not isinstance(self.held, dict):
            return [] if same else [self.name]
        keys = dict.fromkeys([*self.before, *self.held])
        found = [key for key in keys if not _is(self.held.get(key, _GONE), self.before.get(key, _GONE))]
        if self.keyed:
            return [f"{self.name}{key}" for key in found]
        return [self.name] if found or not same else []

    def restore(self) -> None:
        if not self.changed():
            return
        if self.keyed and isinstance(self.held, dict):  # never emptied: an object may be asked for them meanwhile
            for key in self.held.keys() - self.before.keys():
                del self.held[key]
        else:
            self.held.clear()
        self.held.extend(self.before) if isinstance(self.held, (list, deque)) else self.held.update(self.before)


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether shape, dtype and all values are the same, NaN included."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if torch.equal(one, other):  # many times as fast, and true of nearly all
        return True
    return bool(((one == other) | ((one != one) & (other != other))).all())


def _is(one: Any, other: Any) -> bool:
    """Whether it is the same object, or a number or text that can't be told from it."""
    return one is other or (type(one) is type(other) and isinstance(one, _ATOMS) and one == other)


def _is_plain(value: torch.Tensor) -> bool:
    """Whether it has values of its own that can be read, and written again."""
    if type(value) not in (torch.Tensor, torch.nn.Parameter):  # one of a lazy module, of a trace, quantized
        return False
    return value.layout == torch.strided and not (value.is_meta or value.is_quantized or value.is_inference())


def _is_open(value: Any) -> bool:
    """Whether it is an object of the user's, or of a library that keeps models: its attributes may be looked into."""
    own = isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, type)
    return own and type(value).__module__.partition(".")[0] not in _SHUT
