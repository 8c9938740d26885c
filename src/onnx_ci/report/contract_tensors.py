"""Changes of the inputs and outputs by name: gone, new, renamed, moved, of another dtype or other values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx_ci.records.contract import TensorContract
from onnx_ci.report.contract_change import Change, breaking, compatible, may_break

Pair = tuple[TensorContract, TensorContract]
"""One tensor in the base's contract and in head's."""


def pair(base: Sequence[TensorContract], head: Sequence[TensorContract]) -> list[Pair]:
    """The tensors that both have, by name; what is left goes together where place in the list and type agree."""
    there, here = {one.name: one for one in base}, {one.name: one for one in head}
    return [
        *((one, here[one.name]) for one in base if one.name in here),
        *(
            (one, other)
            for one, other in zip(base, head, strict=False)
            if one.name not in here and other.name not in there and _alike(one, other)
        ),
    ]


def _alike(one: TensorContract, other: TensorContract) -> bool:
    return (one.dtype, _rank(one)) == (other.dtype, _rank(other))


def _rank(tensor: TensorContract) -> int | None:
    return None if tensor.shape is None else len(tensor.shape)


def inputs(base: Sequence[TensorContract], head: Sequence[TensorContract], pairs: Sequence[Pair]) -> Iterator[Change]:
    """What a service has to feed otherwise."""
    lost, new = _unpaired(base, head, pairs)
    for one in lost:
        yield breaking(one.name, f"the input {one.name} is gone: feeding it is an error now")
    for one in new:
        yield breaking(one.name, f"the input {one.name} is new: who serves the base's file does not feed it")
    yield from _renamed("input", pairs)
    yield from _order("inputs", base, head, pairs)
    for before, after in pairs:
        yield from _dtype("input", before, after)
        yield from _values(before, after)


def outputs(base: Sequence[TensorContract], head: Sequence[TensorContract], pairs: Sequence[Pair]) -> Iterator[Change]:
    """What a service has to read otherwise."""
    lost, new = _unpaired(base, head, pairs)
    for one in lost:
        yield breaking(one.name, f"the output {one.name} is gone")
    names = {one.name for one in new}
    places = {one.name: at for at, one in enumerate(head)}
    last = max((at for name, at in places.items() if name not in names), default=-1)
    for one in new:
        if places[one.name] > last:
            yield compatible(one.name, f"the output {one.name} was added at the end")
        else:
            yield breaking(one.name, f"the output {one.name} was added before others: places in the list moved")
    yield from _renamed("output", pairs)
    yield from _order("outputs", base, head, pairs)
    for before, after in pairs:
        yield from _dtype("output", before, after)


def _unpaired(
    base: Sequence[TensorContract], head: Sequence[TensorContract], pairs: Sequence[Pair]
) -> tuple[list[TensorContract], list[TensorContract]]:
    there, here = {before.name for before, _ in pairs}, {after.name for _, after in pairs}
    return [one for one in base if one.name not in there], [one for one in head if one.name not in here]


def _renamed(what: str, pairs: Sequence[Pair]) -> Iterator[Change]:
    for before, after in pairs:
        if before.name != after.name:
            yield breaking(after.name, f"the {what} {before.name} is called {after.name} now")


def _order(
    what: str, base: Sequence[TensorContract], head: Sequence[TensorContract], pairs: Sequence[Pair]
) -> Iterator[Change]:
    now = {before.name: after.name for before, after in pairs}
    kept = {after.name for _, after in pairs}
    old, new = [now[one.name] for one in base if one.name in now], [one.name for one in head if one.name in kept]
    if old != new:
        yield breaking(what, f"the {what} come in another order: {_listed(old)} became {_listed(new)}")


def _listed(names: Sequence[str]) -> str:
    shown = names[:8]
    return f"[{', '.join(shown)}{', …' if len(names) > len(shown) else ''}]"


def _dtype(what: str, before: TensorContract, after: TensorContract) -> Iterator[Change]:
    if before.dtype != after.dtype:
        yield breaking(after.name, f"the {what} {after.name} was {before.dtype} and is {after.dtype}")
    if _rank(before) != _rank(after):
        said = [f"{rank} axes" if rank is not None else "any number of axes" for rank in (_rank(before), _rank(after))]
        yield breaking(after.name, f"the {what} {after.name} had {said[0]} and has {said[1]}")


def _values(before: TensorContract, after: TensorContract) -> Iterator[Change]:
    """The values that are sent: another range often means that they are scaled otherwise, which no size tells."""
    old, new = ((one.low, one.high, one.values, one.nonfinite) for one in (before, after))
    if old == new:
        return
    message = f"the values of {after.name} were {_domain(before)} and are {_domain(after)}"
    known = old != (None, None, None, [])
    yield may_break(after.name, message) if known else compatible(after.name, message)


def _domain(tensor: TensorContract) -> str:
    return " and ".join([_finite(tensor), *tensor.nonfinite])


def _finite(tensor: TensorContract) -> str:
    if tensor.values is not None:
        return f"of {len(tensor.values)} kinds" if len(tensor.values) > 6 else str(tensor.values)
    if tensor.low is None and tensor.high is None:
        return "not declared"
    return f"{'…' if tensor.low is None else f'{tensor.low:g}'} to {'…' if tensor.high is None else f'{tensor.high:g}'}"
