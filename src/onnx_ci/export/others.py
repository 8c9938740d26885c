"""Other inputs than the example, before a graph tells which sizes hold: for a module that may keep something of a call.

They need not make sense: a module is compared with itself, and one that refuses them is asked with the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnx_ci.export import arguments, cases, sizes, values
from onnx_ci.export.held import Other
from onnx_ci.export.loading import Loaded
from onnx_ci.export.types import NamedInputs
from onnx_ci.numerics.words import case_text
from onnx_ci.records.model import DimSpec


def others(given: Loaded) -> Iterator[Other]:
    """Values of the example's sizes, another case of the user's, and sizes one step up and down."""
    yield Other("another input of the same sizes", arguments.bind(given.loaded.module, _drawn(given)))
    for case in [case for case in given.user[1:] if not case.problems][:1]:
        yield Other(case_text(case.name, case.dims), given.call(case))
    for dims in _beside(given):
        named = ", ".join(f"{name} = {size}" for name, size in dims.items())
        plan = sizes.Plan("other-sizes", "", dims)
        made = cases.make(plan, given.declared, given.example, given.user)
        yield Other(f"an input at {named}", given.call(made))


def _drawn(given: Loaded) -> NamedInputs:
    """All tensors drawn anew, those of fixed sizes too."""
    rng = cases.generator(given.spec.name, "other")
    items = {item.path: item for item in given.declared.inputs}
    shown = given.user or ([given.example] if given.example.origin == "user" else [])

    def change(path: str, leaf: Any) -> Any:
        if path not in items:
            return leaf
        return values.make(items[path], leaf.dtype, cases.seen_values(path, shown), given.example.dims, rng)

    return arguments.rebuild(given.example.inputs, change)


def _beside(given: Loaded) -> Iterator[dict[str, int]]:
    """All dims a step above the example together, then all below, as far as they are declared to go."""
    base = given.example.dims
    ranges = {}
    for name, size in base.items():
        dim = given.declared.dims.get(name, DimSpec())
        ranges[name] = sizes.Range.of((dim.min or 1, dim.max), dim, size)
    for way in (1, -1):
        moved = {name: size + way * ranges[name].step for name, size in base.items()}
        dims = base | {name: size for name, size in moved.items() if ranges[name].holds(size)}
        if dims != base:
            yield dims
