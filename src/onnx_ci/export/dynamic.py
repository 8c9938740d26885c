"""Reads which axes the short form's export_kwargs call dynamic: dynamic_shapes in all its forms, and dynamic_axes."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from onnx_ci.errors import UsageError
from onnx_ci.export import arguments
from onnx_ci.export.types import Leaf, NamedInputs
from onnx_ci.records.model import DimSpec


@dataclasses.dataclass(frozen=True, slots=True)
class Axis:
    """What is said of one axis.

    Attributes:
        dim: A dim name, an expression of one ("2*h"), or a size.
        auto: Whether the exporter was to decide; the name is then made of the path.
    """

    dim: str | int
    auto: bool = False


@dataclasses.dataclass(slots=True)
class Dynamic:
    """What export_kwargs say: axes by the path of their tensor, ranges by dim name."""

    axes: dict[str, dict[int, Axis]] = dataclasses.field(default_factory=dict)
    dims: dict[str, DimSpec] = dataclasses.field(default_factory=dict)


def read(
    options: Mapping[str, Any], torchscript: bool, module: torch.nn.Module, example: NamedInputs, where: str
) -> Dynamic:
    """Reads the one of the two options that the exporter takes.

    Raises:
        UsageError: The other exporter's option is given, or one that fits no input or no axis.
    """
    shapes, axes = options.get("dynamic_shapes"), options.get("dynamic_axes")
    names, outputs = options.get("input_names") or [], options.get("output_names") or []
    leaves = arguments.leaves(module, example)
    tensors = [leaf for leaf in leaves if leaf.is_tensor]
    if torchscript and shapes:
        raise UsageError(
            "dynamic_shapes belongs to the dynamo exporter",
            where=where,
            hint="With the torchscript exporter, give dynamic_axes = {input name: {axis: dim name}}.",
        )
    if not torchscript and axes:
        raise UsageError(
            "dynamic_axes belongs to the torchscript exporter",
            where=where,
            hint=f"Write {_as_shapes(axes, tensors, names, outputs)} in its place, "
            'or export with the older one: dynamo=False, or export.exporter = "torchscript" in the config.',
        )
    found = Dynamic()
    if shapes is not None:
        if hasattr(shapes, "dynamic_shapes"):  # torch.export.ShapesCollection and AdditionalInputs
            bound = arguments.bind(module, example)
            shapes = shapes.dynamic_shapes(module, bound.args, bound.kwargs)
        _read_shapes(found, shapes, leaves, example, f"{where}.dynamic_shapes")
    if axes:
        _read_axes(found, axes, tensors, names, outputs, f"{where}.dynamic_axes")
    return found


def _as_shapes(axes: Any, tensors: list[Leaf], names: Sequence[str], outputs: Sequence[str]) -> str:
    """The user's dynamic_axes as the dynamo exporter takes them, as text; the form alone where they can't be read."""
    found = Dynamic()
    try:
        _read_axes(found, axes, tensors, names, outputs, "")
    except (UsageError, AttributeError, TypeError):
        return "dynamic_shapes={parameter: {axis: dim name}}"
    if any(path not in {leaf.parameter for leaf in tensors} for path in found.axes):  # nested: the tree is the user's
        return "dynamic_shapes={parameter: the input's own nesting with {axis: dim name} for each tensor}"
    entries = {leaf.path: found.axes.get(leaf.path) for leaf in tensors}
    said = {path: {at: axis.dim for at, axis in known.items()} if known else None for path, known in entries.items()}
    return f"dynamic_shapes={said!r}"


def auto_name(path: str, axis: int) -> str:
    """The dim name of an axis that has none: an identifier made of the tensor's path."""
    return f"{_identifier(path)}_dim{axis}"


def _identifier(text: str) -> str:
    """A dim name as expressions take it: labels of dynamic_axes may be any text."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    return name if name[:1].isalpha() else f"d{name}"


def unknown(what: str, name: str, known: Iterable[str], where: str) -> UsageError:
    """The error of a name that stands for nothing."""
    known = list(known)
    near = difflib.get_close_matches(name, known, 1)
    hint = f"Did you mean {near[0]}?" if near else f"There is: {', '.join(known) or 'nothing'}."
    return UsageError(f"there is no {what} {name}", where=where, hint=hint)


def _read_shapes(found: Dynamic, shapes: Any, leaves: list[Leaf], example: NamedInputs, where: str) -> None:
    order = list(dict.fromkeys(leaf.parameter for leaf in leaves))
    values = {name: example[name] for name in order if name in example}
    if isinstance(shapes, Mapping):
        for name, shape in shapes.items():
            if name not in values and shape:
                raise unknown("input", str(name), values, where)
        given = dict(shapes)
    elif isinstance(shapes, Sequence) and not isinstance(shapes, str):
        if len(shapes) > len(order):
            raise UsageError(f"{len(shapes)} entries for {len(order)} inputs ({', '.join(order)})", where=where)
        given = dict(zip(order, shapes, strict=False))  # torch lets trailing ones be left out
    else:
        raise UsageError(f"expected a dict or a tuple, got {type(shapes).__name__}", where=where)
    for name, value in values.items():
        _walk(found, value, given.get(name), name, f"{where}.{name}")


def _walk(found: Dynamic, value: Any, shape: Any, path: str, where: str) -> None:
    if shape is None:
        return
    nested = arguments.children(value)
    if nested is None:
        if isinstance(value, torch.Tensor):
            found.axes[path] = _read_tensor(found, value, shape, path, where)
        return
    for at, (step, child) in enumerate(nested):
        _walk(found, child, _inner(shape, step, at, where), f"{path}{step}", f"{where}{step}")


def _inner(shape: Any, step: str, at: int, where: str) -> Any:
    name: Any = step[1:] if step.startswith(".") else at
    if isinstance(shape, Mapping):
        return shape.get(name)
    if isinstance(shape, Sequence) and not isinstance(shape, str):
        return shape[at] if at < len(shape) else None
    if dataclasses.is_dataclass(shape) and isinstance(name, str):
        return getattr(shape, name, None)
    raise UsageError(f"expected the input's own nesting, got {type(shape).__name__}", where=where)


def _read_tensor(found: Dynamic, value: torch.Tensor, shape: Any, path: str, where: str) -> dict[int, Axis]:
    if isinstance(shape, Mapping):
        entries = dict(shape)
    elif isinstance(shape, Sequence) and not isinstance(shape, str):
        if len(shape) != value.dim():
            raise UsageError(f"{len(shape)} entries for a tensor of {value.dim()} axes", where=where)
        entries = dict(enumerate(shape))
    else:
        raise UsageError(f"expected {{axis: Dim}}, got {type(shape).__name__}", where=where)
    axes: dict[int, Axis] = {}
    for axis, dim in entries.items():
        known = _read_dim(found, dim, path, at := _axis(axis, value, where), where)
        if known is not None:
            axes[at] = known
    return axes


def _axis(axis: Any, value: torch.Tensor, where: str) -> int:
    if not isinstance(axis, int) or not -value.dim() <= axis < value.dim():
        raise UsageError(f"axis {axis!r} is none of a tensor of {value.dim()} axes", where=where)
    return axis % value.dim()


def _read_dim(found: Dynamic, dim: Any, path: str, axis: int, where: str) -> Axis | None:
    if dim is None:
        return None
    if isinstance(dim, int):
        return Axis(dim)
    if isinstance(dim, str):
        found.dims.setdefault(_identifier(dim), DimSpec())
        return Axis(_identifier(dim))
    if isinstance(dim, type(torch.export.Dim.AUTO)):
        if dim.type.name == "STATIC":
            return None
        name = auto_name(path, axis)
        found.dims[name] = DimSpec(min=dim.min, max=dim.max)
        return Axis(name, auto=True)
    root = getattr(dim, "root", dim)  # 2*h is derived from h
    if not hasattr(root, "__name__") or not hasattr(root, "min"):
        raise UsageError(f"axis {axis}: expected a torch.export.Dim, got {type(dim).__name__}", where=where)
    found.dims[root.__name__] = DimSpec(
        min=root.min if isinstance(root.min, int) and root.min > 0 else None,  # 0 is torch's own default
        max=root.max if isinstance(root.max, int) else None,  # no end is a symbol of its own
    )
    return Axis(dim.__name__.replace(" ", ""))


def _read_axes(
    found: Dynamic,
    axes: Mapping[str, Any],
    tensors: list[Leaf],
    names: Sequence[str],
    outputs: Sequence[str],
    where: str,
) -> None:
    by_name = {leaf.path: leaf for leaf in tensors} | dict(zip(names, tensors, strict=False))
    for name, entries in axes.items():
        if name in outputs:
            continue
        if name not in by_name:
            raise unknown("input", name, by_name, where)
        leaf = by_name[name]
        pairs = entries.items() if isinstance(entries, Mapping) else ((axis, None) for axis in entries)
        for axis, dim in pairs:
            at = _axis(axis, leaf.value, f"{where}.{name}")
            known = Axis(_identifier(str(dim))) if dim is not None else Axis(auto_name(leaf.path, at), auto=True)
            found.dims.setdefault(str(known.dim), DimSpec())
            found.axes.setdefault(leaf.path, {})[at] = known
