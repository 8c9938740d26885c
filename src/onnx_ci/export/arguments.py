"""How forward is called, and what the values inside a call and inside its outputs are named."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from onnx_ci.errors import OnnxCiError
from onnx_ci.export.types import Call, Leaf, NamedInputs, Outputs

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclasses.dataclass(frozen=True, slots=True)
class _Placed:
    """A value and where it stands: `keyword` is empty for a positional one."""

    parameter: str
    path: str
    keyword: str
    value: Any


def bind(module: torch.nn.Module, inputs: NamedInputs) -> Call:
    """Turns values by name into a call: positional as far as forward's signature allows, the rest by keyword.

    Raises:
        OnnxCiError: A name that forward lacks, or a parameter without a value.
    """
    placed = _place(module, inputs)
    return Call(
        args=tuple(item.value for item in placed if not item.keyword),
        kwargs={item.keyword: item.value for item in placed if item.keyword},
    )


def leaves(module: torch.nn.Module, inputs: NamedInputs) -> list[Leaf]:
    """Every tensor and Python value of a call, in the order in which the exporter flattens it."""
    return [
        Leaf(path, item.parameter, value)
        for item in _place(module, inputs)
        for path, value in flatten(item.value, item.path)
    ]


def paths(inputs: NamedInputs) -> dict[str, Any]:
    """Every leaf by its path, parameter by parameter in the order given; needs no module."""
    return dict(pair for name, value in inputs.items() for pair in flatten(value, name))


def rebuild(inputs: NamedInputs, change: Callable[[str, Any], Any]) -> NamedInputs:
    """The same nesting with each leaf replaced by ``change(path, leaf)``."""
    return {name: _rebuild(value, name, change) for name, value in inputs.items()}


def call(module: torch.nn.Module, call: Call) -> Outputs:
    """Runs forward once, on clones of the tensors and without gradients; what it raises becomes the error.

    Every leaf of the output is a value, in the exporter's order, except None, which the exporter leaves out too.
    """
    try:
        return _called(module, call)
    except (Exception, SystemExit) as error:
        failed = error
    if _of_the_tracer(failed):
        # torch.cond and while_loop are traced as they run; a call under a watch of ours that does not know them leaves
        # the tracer in a state in which every later one fails as well. It says nothing of the module.
        torch.compiler.reset()
        try:
            return _called(module, call)
        except (Exception, SystemExit) as error:
            failed = error
            torch.compiler.reset()
    frames = tuple((frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(failed.__traceback__))
    return Outputs([], [], f"{type(failed).__name__}: {failed}", frames)


def _called(module: torch.nn.Module, call: Call) -> Outputs:
    args, kwargs = pytree.tree_map_only(torch.Tensor, torch.Tensor.clone, (call.args, call.kwargs))
    with torch.no_grad():
        return collect(module(*args, **kwargs))


def copied(outputs: Outputs) -> Outputs:
    """The outputs for keeping: one of them may be a buffer itself, which is put back, or written by the next call."""
    values = [value.detach().clone() if isinstance(value, torch.Tensor) else value for value in outputs.values]
    return dataclasses.replace(outputs, values=values)


def _of_the_tracer(error: BaseException) -> bool:
    """Whether a control-flow operator could not be traced, which is no answer of the module's."""
    return type(error).__module__.startswith("torch._dynamo") or "HigherOrderOperator" in str(error)


def collect(given: Any) -> Outputs:
    """Flattens what forward returned."""
    found = [(path, value) for path, value in flatten(given, "") if value is not None]
    return Outputs([value for _, value in found], _keys([path for path, _ in found]))


def flatten(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The leaves of nested values with their paths, in the exporter's order; dataclasses are opened like tuples."""
    nested = children(value)
    if nested is None:
        yield path, value
        return
    for step, child in nested:
        yield from flatten(child, f"{path}{step}" if path else step.removeprefix("."))


def children(value: Any) -> list[tuple[str, Any]] | None:
    """One level of nesting as (step, child), with steps such as ".images" and "[1]"; None for a leaf."""
    _register(value)
    if pytree.tree_is_leaf(value):
        return None
    try:
        keyed, _ = pytree.tree_flatten_with_path(value, is_leaf=lambda item: item is not value)
        return [(_step(path[0]), child) for path, child in keyed]
    except ValueError:  # registered without a function that names its keys, as transformers does with its outputs
        items = pytree.tree_leaves(value, is_leaf=lambda item: item is not value)
        if isinstance(value, Mapping) and len(value) == len(items):
            return [(f".{key}", item) for key, item in zip(value, items, strict=True)]
        return [(f"[{at}]", item) for at, item in enumerate(items)]


def _rebuild(value: Any, path: str, change: Callable[[str, Any], Any]) -> Any:
    nested = children(value)
    if nested is None:
        return change(path, value)
    _, spec = pytree.tree_flatten(value, is_leaf=lambda item: item is not value)
    return pytree.tree_unflatten([_rebuild(child, f"{path}{step}", change) for step, child in nested], spec)


def _register(value: Any) -> None:
    """Lets torch open a dataclass that nobody has registered; it would refuse the whole export otherwise."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and pytree.tree_is_leaf(value):
        try:
            torch.export.register_dataclass(type(value))
        except Exception:  # fields that its constructor does not take: it stays a leaf, and the export names it
            return


def _step(key: Any) -> str:
    if isinstance(key, pytree.SequenceKey):
        return f"[{key.idx}]"
    if isinstance(key, pytree.GetAttrKey):
        return f".{key.name}"
    name = getattr(key, "key", key)
    return f".{name}" if isinstance(name, str) else f"[{name!r}]"


def _keys(found: list[str]) -> list[str]:
    """Drops the indices in front of a key; a place in a tuple alone is no key."""
    short = [re.sub(r"^(\[\d+\])*\.?", "", path) for path in found]
    return [path if short.count(path) == 1 else "" for path in short]


def _place(module: torch.nn.Module, inputs: NamedInputs) -> list[_Placed]:
    parameters = _parameters(module)
    _check_names(module, parameters, inputs)
    fixed = _must_be_positional(parameters, inputs)
    placed: list[_Placed] = []
    by_keyword = False
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            for key, value in inputs.get(name, {}).items():
                placed.append(_Placed(name, f"{name}.{key}", key, value))
        elif parameter.kind is parameter.VAR_POSITIONAL:
            for at, value in enumerate(inputs.get(name, ())):
                placed.append(_Placed(name, f"{name}[{at}]", "", value))
        elif name in inputs:
            keyword = name if by_keyword or parameter.kind not in _POSITIONAL else ""
            placed.append(_Placed(name, name, keyword, inputs[name]))
        elif name in fixed:
            placed.append(_Placed(name, name, "", parameter.default))
        else:
            by_keyword = by_keyword or parameter.kind in _POSITIONAL  # a gap: what follows can't be positional
    return placed + [_Placed(name, name, name, value) for name, value in inputs.items() if name not in parameters]


def _must_be_positional(parameters: Mapping[str, inspect.Parameter], inputs: NamedInputs) -> set[str]:
    """The parameters up to the last one that can be given by position only."""
    order = list(parameters.values())
    ends = [
        at
        for at, parameter in enumerate(order)
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL) and parameter.name in inputs
    ]
    return {parameter.name for parameter in order[: max(ends, default=0)]}


def _parameters(module: torch.nn.Module) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(module.forward).parameters
    except (TypeError, ValueError) as error:
        raise OnnxCiError(f"the signature of {type(module).__name__}.forward can't be read: {error}") from error


def _check_names(module: torch.nn.Module, parameters: Mapping[str, inspect.Parameter], inputs: NamedInputs) -> None:
    where = f"{type(module).__name__}.forward"
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    for name in inputs:
        if name not in parameters and not takes_any:
            near = difflib.get_close_matches(name, parameters, 1)
            raise OnnxCiError(
                f"there is no parameter {name}; it takes {', '.join(parameters) or 'none'}",
                where=where,
                hint=f"Did you mean {near[0]}?" if near else "Name the inputs of a case as forward names them.",
            )
    missing = [
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and name not in inputs
    ]
    if missing:
        raise OnnxCiError(
            f"no value is given for {', '.join(missing)}",
            where=where,
            hint="Give it in the case, or declare its shape under inputs.",
        )
