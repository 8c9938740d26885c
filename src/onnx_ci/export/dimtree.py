"""Says to the exporters which axes are dynamic: torch.export's tree of Dims, TorchScript's table of axes."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from onnx_ci.export.types import Call, Declared, DeclaredInput, Leaf
from onnx_ci.records import expression
from onnx_ci.records.model import DimSpec


def shapes_from_declared(
    module: torch.nn.Module, call: Call, leaves: Sequence[Leaf], declared: Declared
) -> dict[str, Any] | None:
    """Builds ``dynamic_shapes``: of the arguments' form, with a Dim for each dynamic axis; None when all are fixed."""
    by_path = {item.path: item for item in declared.inputs}
    if not any(isinstance(axis, str) for item in declared.inputs for axis in item.axes):
        return None
    made: dict[str, Any] = {}
    specs = [_axes(by_path.get(leaf.path), declared, made) if leaf.is_tensor else None for leaf in leaves]
    return shaped(module, call, specs)


def shaped(module: torch.nn.Module, call: Call, specs: Sequence[dict[int, Any] | None]) -> dict[str, Any]:
    """The axes of each leaf of a call, in the form in which forward takes the arguments."""
    _, form = pytree.tree_flatten((call.args, call.kwargs))
    args, kwargs = pytree.tree_unflatten(specs, form)
    return dict(inspect.signature(module.forward).bind(*args, **kwargs).arguments)


def shapes_from_user(given: Any, declared: Declared) -> Any:
    """The short form's own ``dynamic_shapes``; a name as text becomes a Dim, which torch.export needs."""
    made: dict[str, Any] = {}

    def change(node: Any) -> Any:
        if isinstance(node, str):
            return _dim(node, declared, made)
        if isinstance(node, dict):
            return {key: change(item) for key, item in node.items()}
        if isinstance(node, (list, tuple)):
            return type(node)(change(item) for item in node)
        return node

    return change(given)


def torchscript_axes(names: Sequence[str], inputs: Sequence[DeclaredInput | None]) -> dict[str, dict[int, str]]:
    """The table that the older exporter takes, by the file's input names."""
    table = {
        name: {axis: dim for axis, dim in enumerate(item.axes) if isinstance(dim, str)}
        for name, item in zip(names, inputs, strict=True)
        if item is not None
    }
    return {name: axes for name, axes in table.items() if axes}


def _axes(item: DeclaredInput | None, declared: Declared, made: dict[str, Any]) -> dict[int, Any] | None:
    if item is None:
        return None
    return {
        axis: torch.export.Dim.AUTO if axis in item.auto else _dim(name, declared, made)
        for axis, name in enumerate(item.axes)
        if isinstance(name, str)
    }


def _dim(axis: str, declared: Declared, made: dict[str, Any]) -> Any:
    """A Dim, or one derived from another for an expression such as ``2*h``."""
    parsed = expression.parse(axis)
    if len(parsed.names) > 1:  # torch has no such Dim; what the capture assumes of this one is held against the sum
        return made.setdefault(axis, torch.export.Dim(f"sum_of_{'_and_'.join(sorted(parsed.names))}_{len(made)}"))
    for name in parsed.names - made.keys():  # one object a name: torch takes two of one name for two dims
        spec = declared.dims.get(name) or DimSpec()
        bounds = {key: value for key, value in (("min", spec.min), ("max", spec.max)) if value is not None}
        made[name] = torch.export.Dim(name, **bounds)
    derived: Any = parsed(made)  # a Dim knows + and * with numbers
    return derived
