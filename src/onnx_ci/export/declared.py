"""What is declared of the inputs: from the config, or read out of the short form's export_kwargs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import torch

from onnx_ci.errors import UsageError
from onnx_ci.export import arguments, dynamic
from onnx_ci.export.axes import names_in
from onnx_ci.export.types import Declared, DeclaredInput, Entrypoint, Leaf, NamedInputs
from onnx_ci.records import expression
from onnx_ci.records.model import DimSpec, InputSpec, ModelSpec


def declare(spec: ModelSpec, entrypoint: Entrypoint, example: NamedInputs, module: torch.nn.Module) -> Declared:
    """Puts together what is promised of each tensor input, in the exporter's order.

    What the config says of an input outranks export_kwargs, and what neither says is the example's. A dim whose
    range is a single size counts as that size.

    Raises:
        UsageError: The config or export_kwargs speak of an input, an axis or a dim that there is not.
    """
    said = dynamic.Dynamic()
    if entrypoint.short:
        torchscript = uses_torchscript(spec, entrypoint)
        said = dynamic.read(entrypoint.export_kwargs, torchscript, module, example, "export_kwargs")
    leaves = arguments.leaves(module, example)
    _check_names(spec, leaves)
    inputs = [_input(leaf, spec, said) for leaf in leaves if leaf.is_tensor]
    _check_sums(spec, inputs)
    dims = _dims(spec, said, inputs)
    fixed = {name: dim.min for name, dim in dims.items() if dim.min is not None and dim.min == dim.max}
    return Declared(
        inputs=[dataclasses.replace(item, axes=[_settle(axis, fixed) for axis in item.axes]) for item in inputs],
        dims={name: dim for name, dim in dims.items() if name not in fixed},
    )


def uses_torchscript(spec: ModelSpec, entrypoint: Entrypoint) -> bool:
    """Whether the older exporter is asked for; export_kwargs say how to export."""
    dynamo = entrypoint.export_kwargs.get("dynamo")
    return spec.export.exporter == "torchscript" if dynamo is None else not dynamo


def rename(declared: Declared, names: Mapping[str, str]) -> Declared:
    """Gives dims other names, for instance one name to dims that turned out to be the same."""
    return Declared(
        inputs=[
            dataclasses.replace(
                item, axes=[names.get(axis, axis) if isinstance(axis, str) else axis for axis in item.axes]
            )
            for item in declared.inputs
        ],
        dims={names.get(name, name): dim for name, dim in reversed(declared.dims.items())},
    )


def _input(leaf: Leaf, spec: ModelSpec, said: dynamic.Dynamic) -> DeclaredInput:
    given = spec.inputs.get(leaf.path, InputSpec())
    shape = list(leaf.value.shape)
    where = f"models.{spec.name}.inputs.{leaf.path}.shape"
    axes: list[str | int] = list(shape)
    auto: frozenset[int] = frozenset()
    if given.shape is not None:
        if len(given.shape) != len(shape):
            raise UsageError(
                f"{len(given.shape)} axes are declared, and the example has {len(shape)}: {shape}", where=where
            )
        axes = list(given.shape)
    else:
        known = said.axes.get(leaf.path, {})
        axes = [known[at].dim if at in known else size for at, size in enumerate(shape)]
        auto = frozenset(at for at, axis in known.items() if axis.auto)
    return DeclaredInput(
        path=leaf.path,
        axes=axes,
        dtype=given.dtype or dtype_name(leaf.value.dtype),
        auto=auto,
        low=given.low,
        high=given.high,
        values=given.values,
        nonfinite=tuple(given.nonfinite),
    )


def dtype_name(dtype: torch.dtype) -> str:
    """A torch dtype by numpy's name, or "bfloat16"."""
    return str(dtype).removeprefix("torch.")


def _check_names(spec: ModelSpec, leaves: list[Leaf]) -> None:
    tensors = [leaf.path for leaf in leaves if leaf.is_tensor]
    others = {leaf.path: leaf.value for leaf in leaves if not leaf.is_tensor}
    for name in spec.inputs:
        where = f"models.{spec.name}.inputs.{name}"
        if name in others:
            raise UsageError(
                f"it is declared as a tensor, and the example gives {others[name]!r:.60} for it",
                where=where,
                hint="Give a tensor in the first case, or leave the declaration out: other values become constants.",
            )
        if name not in tensors:
            raise dynamic.unknown("input", name, tensors, where)


def _check_sums(spec: ModelSpec, inputs: list[DeclaredInput]) -> None:
    """A dim of a sum must be told by another axis: of a sum alone nobody can say what each is."""
    alone = {axis for item in inputs for axis in item.axes if isinstance(axis, str) and axis.isidentifier()}
    for item in inputs:
        for axis in item.axes:
            left = sorted(names_in(axis) - alone)
            if left and len(names_in(axis)) > 1:
                raise UsageError(
                    f"{axis} is a sum, and {left[0]} stands on no axis of its own",
                    where=f"models.{spec.name}.inputs.{item.path}.shape",
                    hint=f"Name {left[0]} in the shape of the input that has it, or give this axis a dim of its own.",
                )


def _dims(spec: ModelSpec, said: dynamic.Dynamic, inputs: list[DeclaredInput]) -> dict[str, DimSpec]:
    used = {name: None for item in inputs for axis in item.axes for name in sorted(names_in(axis))}
    for name in spec.dims:
        if name not in used:
            raise dynamic.unknown("dim", name, used, f"models.{spec.name}.dims.{name}")
    settled = {name for given in spec.inputs.values() for axis in given.named or () for name in names_in(axis)}
    for name in spec.fixed:
        if name not in used and name not in settled:
            raise dynamic.unknown("dim", name, used, f"models.{spec.name}.variants: {spec.variant}.dims.{name}")
    # What a variant fixes in a shape of the config is a size there already; here it is what export_kwargs name.
    fixed = {name: DimSpec(min=size, max=size, example=size) for name, size in spec.fixed.items()}
    return {name: fixed.get(name) or _dim(spec.dims.get(name), said.dims.get(name, DimSpec())) for name in used}


def _dim(config: DimSpec | None, said: DimSpec) -> DimSpec:
    """The config's range where it gives one, else the one of export_kwargs."""
    if config is None:
        return said
    if config.min is None and config.max is None:
        return DimSpec(min=said.min, max=said.max, example=config.example, multiple_of=config.multiple_of)
    return config


def _settle(axis: str | int, fixed: Mapping[str, int]) -> str | int:
    return axis if isinstance(axis, int) else expression.filled(axis, fixed)
