"""What two modules hold in common: parameters and buffers, matched by name, else by value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch

from onnx_ci.export.oracle import lift

_COUNTERS = ("num_batches_tracked",)
"""What eval mode never reads."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One parameter or buffer that both modules have: its name in the original, and in the adapted one."""

    original: str
    adapted: str

    def __str__(self) -> str:
        return self.original if self.original == self.adapted else f"{self.original} ({self.adapted} once adapted)"


@dataclass(frozen=True, slots=True)
class Changed:
    """A tensor of one name and shape in both modules, with other values; the figures are of float64 values."""

    name: str
    largest: float
    at: list[int]
    learned: bool = False


@dataclass(frozen=True, slots=True)
class Shared:
    """The tensors of two modules side by side.

    Attributes:
        parameters: Learned in both, with equal values: the gradients of these are compared.
        buffers: How many tensors besides are equal: buffers in both, or learned in one of them only.
        changed: Equal by name and shape only.
        only_original: Names of the original's floating parameters and buffers that the adapted one lacks.
        only_adapted: The other way around; what an adaptation computes beforehand is among them.
    """

    parameters: list[Pair]
    buffers: int
    changed: list[Changed]
    only_original: list[str]
    only_adapted: list[str]


def match(original: torch.nn.Module, adapted: torch.nn.Module) -> Shared:
    """Matches by name and shape; what is left, by equal values and, among several, by the longest common ending."""
    first, second = dict(_held(original)), dict(_held(adapted))
    named = [name for name in first if name in second and first[name].shape == second[name].shape]
    pairs, changed = [], []
    for name in named:
        difference = _changed(name, first[name], second[name])
        if difference is None:
            pairs.append(Pair(name, name))
        else:
            changed.append(difference)
    rest_first = {name: value for name, value in first.items() if name not in named}
    rest_second = {name: value for name, value in second.items() if name not in named}
    renamed = list(_by_value(rest_first, rest_second))
    pairs += renamed
    learned_first, learned_second = _learned(original), _learned(adapted)
    learned = [pair for pair in pairs if pair.original in learned_first and pair.adapted in learned_second]
    matched_first, matched_second = {one.original for one in renamed}, {one.adapted for one in renamed}
    return Shared(
        parameters=learned,
        buffers=len(pairs) - len(learned),
        changed=[replace(one, learned=one.name in learned_first | learned_second) for one in changed],
        only_original=[name for name in rest_first if name not in matched_first],
        only_adapted=[name for name in rest_second if name not in matched_second],
    )


def groups(pairs: list[Pair], original: torch.nn.Module, adapted: torch.nn.Module) -> list[list[Pair]]:
    """Puts together what is tied in either module: only the sum of such gradients is the same thing in both."""
    first, second = tensors(original), tensors(adapted)
    found: list[tuple[set[int], list[Pair]]] = []
    for pair in pairs:
        keys, members = {id(first[pair.original]), id(second[pair.adapted])}, [pair]
        apart = []
        for known, others in found:
            if known & keys:
                keys, members = known | keys, others + members
            else:
                apart.append((known, others))
        found = [*apart, (keys, members)]
    return [members for _, members in found]


def tensors(module: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The parameters by name, a tied one under each of its names."""
    return dict(module.named_parameters(remove_duplicate=False))


def _held(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from tensors(module).items()
    for name, buffer in module.named_buffers(remove_duplicate=False):
        if name.rpartition(".")[2] not in _COUNTERS:
            yield name, buffer


def _learned(module: torch.nn.Module) -> set[str]:
    return {name for name, value in tensors(module).items() if value.dtype.is_floating_point or value.dtype.is_complex}


def _changed(name: str, first: torch.Tensor, second: torch.Tensor) -> Changed | None:
    one, other = lift(first.detach()), lift(second.detach())
    if torch.equal(one, other):
        return None
    kind = torch.complex128 if one.is_complex() or other.is_complex() else torch.float64
    difference = (one.to(kind) - other.to(kind)).abs()
    difference[torch.isnan(one) & torch.isnan(other)] = 0.0
    if not bool((difference != 0).any()):
        return None
    worst = int(torch.nan_to_num(difference, nan=torch.inf).argmax())
    at = [int(index) for index in torch.unravel_index(torch.tensor(worst), difference.shape)]
    return Changed(name, float(difference.reshape(-1)[worst]), at)


def _by_value(first: Mapping[str, torch.Tensor], second: Mapping[str, torch.Tensor]) -> Iterator[Pair]:
    marked: dict[tuple[object, ...], list[str]] = {}
    for name, value in second.items():
        marked.setdefault(_mark(value), []).append(name)
    for name, value in first.items():
        candidates = [other for other in marked.get(_mark(value), []) if torch.equal(lift(value), lift(second[other]))]
        if candidates:
            best = max(candidates, key=lambda other: _common_end(name, other))
            marked[_mark(value)].remove(best)
            yield Pair(name, best)


def _mark(value: torch.Tensor) -> tuple[object, ...]:
    """Equal for equal tensors, and nearly always another for others: it spares most comparisons."""
    wide = lift(value.detach())
    return (tuple(value.shape), str(wide.sum().item()), str(wide.abs().sum().item()) if wide.numel() else "")


def _common_end(one: str, other: str) -> int:
    count = 0
    for first, second in zip(reversed(one.split(".")), reversed(other.split(".")), strict=False):
        if first != second:
            break
        count += 1
    return count
