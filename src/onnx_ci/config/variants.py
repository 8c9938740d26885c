"""The variants of a model: what they may be, and the artifact that each becomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnx_ci.config.problems import Path, Problem, did_you_mean, show
from onnx_ci.config.schema import Dim, Model, Variant
from onnx_ci.records.expression import filled, parse
from onnx_ci.records.model import DimSpec, InputSpec, ModelSpec
from onnx_ci.records.result import label


def labels(data: Mapping[str, Any]) -> dict[str, Path]:
    """The place of each ``model`` and ``model@variant`` in the text of a config, sound or not."""
    found: dict[str, Path] = {}
    models = data.get("models")
    for name, model in models.items() if isinstance(models, dict) else ():
        found[name] = ("models", name)
        listed = model.get("variants") if isinstance(model, dict) else None
        for at, variant in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(variant, dict) and isinstance(variant.get("name"), str):
                found.setdefault(label(name, variant["name"]), ("models", name, "variants", at))
    return found


def check(at: Path, model: Model) -> Iterator[Problem]:
    """Looks for variants that can't be told apart, or that are none."""
    taken: set[str] = set()
    for index, variant in enumerate(model.variants):
        path = (*at, "variants", index)
        if variant.name in taken:
            yield Problem(path=(*path, "name"), message=f"{show(variant.name)} is the name of another variant")
        taken.add(variant.name)
        if not variant.kwargs and not variant.dims:
            yield Problem(
                path=path,
                message=f"{variant.name} differs in nothing from the model",
                hint="give it dims = { height = 480, width = 640 }, or kwargs",
            )
        for name, size in variant.dims.items():
            yield from _size((*path, "dims", name), model, name, size)
    for index, variant in enumerate(model.variants):
        if other := next((one for one in model.variants[:index] if not _apart(one, variant)), None):
            yield Problem(
                path=(*at, "variants", index),
                message=f"{variant.name} and {other.name} accept the same input: "
                "no dim is fixed to another size in each",
                hint="a service picks the variant by the size of its input: fix a dim that tells them apart",
            )


def dims_named(model: Model) -> list[str]:
    """The dims that the shapes of a model name, in sums too, each once."""
    axes = [axis for given in model.inputs.values() for axis in given.shape or () if isinstance(axis, str)]
    return list(dict.fromkeys(name for axis in axes for name in sorted(parse(axis).names)))


def _apart(one: Variant, other: Variant) -> bool:
    """Whether no input fits both. What only one of them fixes parts them not: its size is in the other's range."""
    return any(one.dims[name] != other.dims[name] for name in one.dims.keys() & other.dims.keys())


def _size(path: Path, model: Model, name: str, size: int) -> Iterator[Problem]:
    known = [*dict.fromkeys([*sorted(dims_named(model)), *model.dims])]
    # In the short form, export_kwargs() may name dims too: the export knows them.
    if name not in known and ":" in model.entrypoint:
        hint = did_you_mean(name, known) or (f"known are: {', '.join(known)}" if known else "")
        yield Problem(path=path, message="no shape under inputs names this dim", hint=hint)
        return
    dim = model.dims.get(name, Dim())
    if dim.max is not None and size > dim.max:
        yield Problem(path=path, message=f"{size} is above max {dim.max}")
    elif dim.min is not None and size < dim.min:
        yield Problem(path=path, message=f"{size} is below min {dim.min}")
    elif size % dim.multiple_of:
        yield Problem(path=path, message=f"{size} is not a multiple of {dim.multiple_of}")


def resolve(model: ModelSpec, variants: Sequence[Variant], lines: Sequence[int | None]) -> list[ModelSpec]:
    """What is exported of a model: itself, or each of its variants, which stands on its own then.

    Args:
        model: As declared.
        variants: As declared; none for most models.
        lines: Where each stands in the config.
    """
    if not variants:
        return [model]
    all_fixed = {variant.name: dict(variant.dims) for variant in variants}
    return [
        replace(
            model,
            variant=variant.name,
            variants=all_fixed,
            kwargs={**model.kwargs, **variant.kwargs},
            inputs={name: _fix(given, variant.dims) for name, given in model.inputs.items()},
            dims=_left(model, variant),
            declared_at=line or model.declared_at,
        )
        for variant, line in zip(variants, lines, strict=True)
    ]


def _fix(given: InputSpec, sizes: Mapping[str, int]) -> InputSpec:
    shape = given.shape
    if shape is None:
        return given
    fixed = [filled(axis, sizes) if isinstance(axis, str) else axis for axis in shape]
    if fixed == shape:
        return given
    return replace(given, shape=fixed, named=shape)


def _left(model: ModelSpec, variant: Variant) -> dict[str, DimSpec]:
    return {name: dim for name, dim in model.dims.items() if name not in variant.dims}
