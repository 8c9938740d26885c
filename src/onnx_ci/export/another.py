"""Chooses the sizes of a second example: pure arithmetic on the contract's dims."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnx_ci.export.axes import Sizes, names_in
from onnx_ci.records.contract import Contract, DimContract

_GROWTH = 1.5
_ALIKE = 2.0
_WINDOW = 4096


@dataclass(frozen=True, slots=True)
class Room:
    """The sizes that a dim may take in a second example, both ends included; `most` None is without end.

    Attributes:
        beyond: Sizes that are promised, and that the capture did not go along with; where there are any, one of them
            is taken.
    """

    least: int
    most: int | None
    step: int
    beyond: tuple[int, ...] = ()

    def near(self, wanted: int) -> Iterator[int]:
        """The sizes of the range, from the wanted one on."""
        if self.beyond:
            yield from self.beyond
            return
        top = max(2 * wanted, self.least) + _WINDOW * self.step
        high = top if self.most is None else min(self.most, top)
        sizes = range(-(-self.least // self.step) * self.step, high + 1, self.step)
        yield from sorted(sizes[:_WINDOW], key=lambda size: (abs(size - wanted), -size))


def rooms(contract: Contract, example: Sizes, user: Sequence[Sizes]) -> dict[str, Room]:
    """What each dim of the inputs may be: its range in the contract.

    A dim that was left to the exporter and frozen stands as a number in the contract, and has no room, unless a case of
    the user's has another size there. One that was declared dynamic, without a range, has all sizes, though the capture
    froze it.

    Args:
        contract: Of the first export.
        example: The sizes that it ran on.
        user: Those of the user's cases: what they are is promised too.
    """
    used = {name for item in contract.inputs for axis in item.shape or [] for name in names_in(axis)}
    sent = {name: {one[name] for one in user if name in one} - {example.get(name)} for name in contract.dims}
    return {name: _room(dim, sent[name]) for name, dim in contract.dims.items() if name in used or sent[name]}


def choose(rooms: Mapping[str, Room], example: Sizes, taken: set[int], before: list[Sizes]) -> Sizes:
    """Other sizes: distinct, none of 0, 1 or a static one, each dim's another than in the example and `before`.

    About half as large again as the example, and of two dims of one magnitude the smaller becomes the larger: that
    turns over comparisons between them. A dim that can't do so keeps the example's size.
    """
    wanted = _mirrored({name: example[name] for name in rooms if name in example})
    chosen: Sizes = {}
    for name, size in wanted.items():
        avoid = {0, 1, example[name], *taken, *chosen.values(), *(one[name] for one in before if name in one)}
        chosen[name] = next((new for new in rooms[name].near(size) if new not in avoid), example[name])
    return {**example, **chosen}


def variations(rooms: Mapping[str, Room], example: Sizes, taken: set[int], before: list[Sizes]) -> Iterator[Sizes]:
    """Sizes to try in this order, since the module may refuse some: all dims, those that the capture left free, one."""
    free = {name: room for name, room in rooms.items() if not room.beyond}
    each = [{name: room} for name, room in rooms.items()]
    tried: list[Sizes] = [example]
    for some in (rooms, free, *each):
        sizes = choose(some, example, taken, before)
        if sizes not in tried:
            tried.append(sizes)
            yield sizes


def fits(sizes: Sizes, rooms: Mapping[str, Room], example: Sizes, taken: set[int]) -> bool:
    """Whether given sizes make a good second example: all that `choose` promises, in every dim that has room."""
    moved = [sizes.get(name, 0) for name in rooms]
    return (
        len(set(moved)) == len(moved)
        and not {0, 1, *taken} & set(moved)
        and all(sizes.get(name) != example.get(name) and _in(room, sizes.get(name, 0)) for name, room in rooms.items())
    )


def _in(room: Room, size: int) -> bool:
    if room.beyond:
        return size in room.beyond
    return _between(size, room.least, room.most) and size % room.step == 0


def _room(dim: DimContract, sent: set[int]) -> Room:
    captured = (dim.captured_min if dim.captured_min is not None else 0, dim.captured_max)
    if not dim.declared:
        if captured[0] == captured[1]:
            return Room(2, None, dim.multiple_of)
        outside = sorted(size for size in sent if size > 1 and not _between(size, *captured))
        return Room(max(dim.min, 2), dim.max, dim.multiple_of, tuple(outside))
    return Room(max(dim.min, 2), dim.max, dim.multiple_of, _beyond(dim, *captured))


def _beyond(dim: DimContract, least: int, most: int | None) -> tuple[int, ...]:
    """The declared sizes next to the captured range, above and below; none for a frozen dim: all others are."""
    step, found = dim.multiple_of, list[int]()
    if least == most:
        return ()
    if most is not None:
        first = (most // step + 1) * step
        found += [size for size in (first, first + step) if dim.max is None or size <= dim.max]
    last = (least - 1) // step * step
    found += [size for size in (last, last - step) if size >= max(dim.min, 2)]
    return tuple(found)


def _between(size: int, least: int, most: int | None) -> bool:
    return least <= size and (most is None or size <= most)


def _mirrored(example: Sizes) -> Sizes:
    """The sizes to aim at: grown, and exchanged between dims of one magnitude."""
    order = sorted(example, key=lambda name: example[name])
    grown = {name: round(example[name] * _GROWTH) for name in order}
    groups: list[list[str]] = []
    for name in order:
        alike = groups and example[name] <= _ALIKE * example[groups[-1][0]]
        groups[-1].append(name) if alike else groups.append([name])
    pairs = itertools.chain.from_iterable(zip(group, reversed(group), strict=True) for group in groups)
    return {name: grown[other] for name, other in pairs}
