"""The cases of a model before they are written: the user's, the example, and those at the edges of dims."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from onnx_ci.errors import UsageError
from onnx_ci.export import arguments, casefiles, sizes, values
from onnx_ci.export.axes import names_in
from onnx_ci.export.given import Given, standing
from onnx_ci.export.measure import measure
from onnx_ci.export.types import Declared, DeclaredInput, Entrypoint, NamedInputs, RunCase
from onnx_ci.records.model import DimSpec, InputSpec, ModelSpec


def example(spec: ModelSpec, entrypoint: Entrypoint, given: Sequence[Given]) -> RunCase:
    """What the export runs on: the user's first case, else one made from the declared shapes.

    Raises:
        UsageError: There is neither a case nor a shape.
    """
    if given:
        return RunCase(given[0].name, "user", "the first case: the export ran on it", given[0].inputs)
    inputs = standing(entrypoint)
    if inputs and not spec.inputs:
        return RunCase("example", "user", "the arguments in export_kwargs: the export ran on them", inputs)
    if not spec.inputs:
        raise UsageError(
            "there is no case, and no shape to make one from",
            where=f"models.{spec.name}",
            hint='Name real inputs, cases = ["file.py:function"], or declare inputs.NAME = { dtype = …, shape = […] }.',
        )
    chosen = sizes.example(_ranges(spec), _taken(spec), _shapes(spec))
    rng = generator(spec.name, "example")
    made = {
        name: values.make(_plain(name, one, spec), _torch_dtype(one, name, spec), [], chosen, rng)
        for name, one in spec.inputs.items()
    }
    inputs |= casefiles.nest(made, f"models.{spec.name}.inputs")
    return RunCase("example", "example", "made from the declared shapes: the export ran on it", inputs, chosen)


def user_cases(given: Sequence[Given], promised: Declared) -> list[RunCase]:
    """All of the user's cases, the first included, with their dims read from their shapes.

    A case that contradicts the declaration stays a case; its `problems` say how.
    """
    frozen = {} if not given else _python_values(given[0].inputs)
    cases = []
    for one in given:
        why = "given by the user" if one is not given[0] else "given by the user; the export ran on it"
        case = measure(RunCase(one.name, "user", why, one.inputs), promised)
        other = [
            f"{path} is {value!r:.40} here and {frozen[path]!r:.40} in the first case, which is frozen into the file"
            for path, value in _python_values(one.inputs).items()
            if path in frozen and not _same(value, frozen[path])
        ]
        problems = case.problems + other
        cases.append(replace(case, problems=problems, why="; but ".join([why, *problems])))
    return cases


def boundary_cases(
    promised: Declared,
    ranges: Mapping[str, tuple[int, int | None]],
    example: RunCase,
    user: Sequence[RunCase],
    *,
    notes: list[str] | None = None,
    flops: float = 0.0,
) -> list[RunCase]:
    """Cases at the edges of the dims: DESIGN's list, within a budget of memory and work.

    Args:
        promised: The declaration.
        ranges: What each dim may be, both ends included; a dim that is not in it is left at the example's size.
        example: The case that the export ran on, measured.
        user: The user's cases, whose values show what the inputs may be.
        notes: Receives a sentence for each case that was left out.
        flops: That the example takes; 0 where it is not known.
    """
    base = example if example.dims else measure(example, promised)
    limits, shapes, widths = frame(promised, ranges, base)
    known = [case.dims for case in user]
    plans, left_out = sizes.boundaries(limits, base.dims, shapes, widths, known, flops)
    if notes is not None:
        notes += left_out
    return [make(plan, promised, base, user) for plan in plans]


def frame(
    promised: Declared, ranges: Mapping[str, tuple[int, int | None]], base: RunCase
) -> tuple[dict[str, sizes.Range], dict[str, list[int | str]], dict[str, int]]:
    """The range of each dim that may vary; and of each tensor, by path, its axes and the bytes of an element."""
    limits = {
        name: sizes.Range.of(ranges[name], promised.dims.get(name, DimSpec()), size)
        for name, size in base.dims.items()
        if name in ranges
    }
    shapes = {item.path: item.axes for item in promised.inputs}
    leaves = arguments.paths(base.inputs)
    return limits, shapes, {path: leaves[path].element_size() for path in shapes}


def make(plan: sizes.Plan, promised: Declared, base: RunCase, user: Sequence[RunCase]) -> RunCase:
    """A case of the planned sizes, with values as the user's cases have them."""
    items = {item.path: item for item in promised.inputs}
    seen = {path: seen_values(path, [case for case in user if not case.problems]) for path in items}

    def inputs(*words: str, inverted: bool = False) -> NamedInputs:
        rng = generator(plan.name, *map(str, plan.dims.values()), *words)

        def change(path: str, leaf: Any) -> Any:
            if path not in items:
                return leaf
            if not any(names_in(axis) for axis in items[path].axes):
                return values.fitted(leaf, seen[path], plan.dims)
            return values.make(items[path], leaf.dtype, seen[path], plan.dims, rng, inverted=inverted)

        return arguments.rebuild(base.inputs, change)

    def repeated(path: str, leaf: Any) -> Any:
        return values.repeated(leaf, items[path], plan.dims) if path in items else leaf

    def redrawn(at: int) -> NamedInputs:
        return arguments.rebuild(base.inputs, repeated) if at else inputs("again", inverted=True)

    return RunCase(plan.name, "boundary", plan.why, inputs(), plan.dims, redrawn=redrawn)


def seen_values(path: str, user: Sequence[RunCase]) -> list[values.Seen]:
    """What the user's cases have at a path."""
    leaves = [(arguments.paths(case.inputs).get(path), case.dims) for case in user]
    return [values.Seen(leaf, dims) for leaf, dims in leaves if isinstance(leaf, torch.Tensor)]


def _python_values(inputs: NamedInputs) -> NamedInputs:
    return {path: leaf for path, leaf in arguments.paths(inputs).items() if not isinstance(leaf, torch.Tensor)}


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and (one is other or bool(one == other))


def generator(*words: str) -> np.random.Generator:
    """Draws the same for the same words, on any machine."""
    return np.random.default_rng(zlib.crc32("/".join(words).encode()))


def _shapes(spec: ModelSpec) -> dict[str, list[int | str]]:
    missing = [name for name, one in spec.inputs.items() if one.shape is None]
    if missing:
        raise UsageError(
            f"there is no case, and inputs.{missing[0]} has no shape to make one from",
            where=f"models.{spec.name}.inputs.{missing[0]}",
            hint='Add shape = ["batch", 3, …], or name real inputs under cases.',
        )
    return {name: list(one.shape or []) for name, one in spec.inputs.items()}


def _ranges(spec: ModelSpec) -> dict[str, DimSpec]:
    used = {name for shape in _shapes(spec).values() for axis in shape for name in names_in(axis)}
    return {name: spec.dims.get(name, DimSpec()) for name in sorted(used)}


def _taken(spec: ModelSpec) -> set[int]:
    return {axis for shape in _shapes(spec).values() for axis in shape if isinstance(axis, int)}


def _plain(name: str, one: InputSpec, spec: ModelSpec) -> DeclaredInput:
    axes = _shapes(spec)[name]
    return DeclaredInput(name, axes, one.dtype or "float32", low=one.low, high=one.high, values=one.values)


def _torch_dtype(one: InputSpec, name: str, spec: ModelSpec) -> torch.dtype:
    dtype = getattr(torch, one.dtype or "float32", None)
    if not isinstance(dtype, torch.dtype):
        raise UsageError(
            f"no case can be made: torch has no dtype {one.dtype}",
            where=f"models.{spec.name}.inputs.{name}.dtype",
            hint="Name real inputs under cases.",
        )
    return dtype
