"""Gathers the cases that the user gives: what the functions return, and what the files hold."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onnx_ci.errors import UsageError
from onnx_ci.export import arguments, casefiles, usercode
from onnx_ci.export.types import Entrypoint, NamedInputs
from onnx_ci.records.model import ModelSpec


@dataclass(frozen=True, slots=True)
class Given:
    """A case as the user gave it."""

    name: str
    inputs: NamedInputs
    source: str


def read(spec: ModelSpec, entrypoint: Entrypoint, root: Path) -> list[Given]:
    """Runs the user's case functions, once each, and reads the case files; names are made unique.

    Raises:
        UsageError: A source that is not there, or gives something else than cases.
        OnnxCiError: The user's function raised, or a file can't be read.
    """
    found: list[Given] = []
    always = standing(entrypoint)
    if entrypoint.make_inputs is not None:
        made = usercode.run(entrypoint.make_inputs, root, where=f"models.{spec.name}.entrypoint", name="make_inputs")
        found += _checked(made, "make_inputs()", always, f"models.{spec.name}.entrypoint", entrypoint)
    for at, source in enumerate(spec.cases):
        where = f"models.{spec.name}.cases[{at}]"
        target, name = usercode.split(source)
        if name:
            module, file = usercode.load(target, root, where=where)
            wanted = usercode.function(module, file, name, where=where)
            made = usercode.run(wanted, root, where=where, name=name)
            found += _checked(made, f"{name}()", always, where, entrypoint)
            continue
        for path in casefiles.find(source, root, where=where):
            inputs = _read_file(path, spec, entrypoint, found, where)
            found.append(Given(path.stem, {**always, **inputs}, path.name))
    names = _unique([given.name for given in found])
    return [replace(given, name=name) for given, name in zip(found, names, strict=True)]


def standing(entrypoint: Entrypoint) -> NamedInputs:
    """The arguments that export_kwargs give to every call, by parameter."""
    args = entrypoint.export_kwargs.get("args") or ()
    kwargs = dict(entrypoint.export_kwargs.get("kwargs") or {})
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    if args and isinstance(args[-1], dict) and not kwargs:  # as torch.onnx.export reads it
        args, kwargs = args[:-1], args[-1]
    named = dict(zip(_parameters(entrypoint), args, strict=False))
    return {**named, **kwargs}


def _checked(made: Any, who: str, always: NamedInputs, where: str, entrypoint: Entrypoint) -> list[Given]:
    several = isinstance(made, list) or (isinstance(made, tuple) and all(_is_named(item) for item in made))
    if several and not made:
        raise UsageError(f"{who} returned no case", where=where, hint=_HINT)
    found = []
    for at, item in enumerate(made if several else [made]):
        shown = f"{who}[{at}]" if several else who
        name, given = item if _is_named(item) else ("", item)
        named = _named(given, shown, entrypoint, where)
        inputs = arguments.rebuild(named, lambda path, leaf: _as_tensor(leaf, f"{where}: {path}"))
        found.append(Given(name or (f"case-{at + 1}" if at else "example"), {**always, **inputs}, who))
    return found


_HINT = "Return a list of (name, {parameter of forward: value}), or the arguments as torch.onnx.export takes them."


def _is_named(item: Any) -> bool:
    return isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str)


def _named(given: Any, shown: str, entrypoint: Entrypoint, where: str) -> NamedInputs:
    """One call's values by parameter: given by name, or by position with names in a dict at the end."""
    if isinstance(given, Mapping):
        if not all(isinstance(key, str) for key in given):
            raise UsageError(f"{shown}: its inputs are not all named by text", where=where, hint=_HINT)
        return dict(given)
    if isinstance(given, (torch.Tensor, np.ndarray)):
        given = (given,)
    if not isinstance(given, (tuple, list)) or not given:
        said = usercode.kind(given)
        raise UsageError(f"{shown} gives {said}, not the inputs of a call", where=where, hint=_HINT)
    parameters = inspect.signature(entrypoint.module.forward).parameters
    values, named = list(given), dict[str, Any]()
    if isinstance(values[-1], Mapping) and values[-1] and set(values[-1]) <= set(parameters):
        named = dict(values.pop())
    found: NamedInputs = {}
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL and values:
            found[name], values = tuple(values), []
        elif values and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            found[name] = values.pop(0)
    if values:
        counts = f"{len(given)} values, and forward takes {len(found)} ({', '.join(found)})"
        raise UsageError(f"{shown} gives {counts}", where=where, hint=_HINT)
    return {**found, **named}


def _as_tensor(leaf: Any, where: str) -> Any:
    return casefiles.to_tensor(leaf, where=where) if isinstance(leaf, (np.ndarray, np.generic)) else leaf


def _parameters(entrypoint: Entrypoint) -> list[str]:
    return list(inspect.signature(entrypoint.module.forward).parameters)


def _read_file(path: Path, spec: ModelSpec, entrypoint: Entrypoint, found: Sequence[Given], where: str) -> NamedInputs:
    template = found[0].inputs if found else None
    names = list(spec.input_names or [])
    if template is not None and not names:
        names = [leaf.path for leaf in arguments.leaves(entrypoint.module, template) if leaf.is_tensor]
    return casefiles.read(path, template, _parameters(entrypoint), names, where=where)


def _unique(names: Sequence[str]) -> list[str]:
    made: list[str] = []
    for name in names:
        again, candidate = 2, name
        while candidate in made:
            candidate, again = f"{name}-{again}", again + 1
        made.append(candidate)
    return made
