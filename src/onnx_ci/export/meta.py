"""Runs forward over the declared sizes on the meta device, where a size costs no data: what it does at each."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from onnx_ci.export import arguments
from onnx_ci.export.axes import names_in, size_of, solve
from onnx_ci.export.jumps import Numbers, Trace
from onnx_ci.export.state import preserved
from onnx_ci.export.subject import Subject
from onnx_ci.export.types import NamedInputs, Outputs

Run = Callable[[Mapping[str, int]], Trace]
"""What forward does when the dims have these sizes."""
_NOT_OF_SIZES = ("meta", "Meta", "NotImplemented")


class NoMetaForm(Exception):
    """Forward can't be run without data: it reads values, or calls what has no meta kernel."""


def meta_run(subject: Subject) -> Run:
    """Makes a copy of the module without data, and what runs it.

    Raises:
        NoMetaForm: It can't be copied, or does not give the example's shapes at the example's sizes. The run itself
            raises it too.
    """
    try:
        module = _bare_copy(subject.module)
    except Exception as error:  # whatever a user's __deepcopy__ raises
        raise NoMetaForm(f"it can't be copied ({type(error).__name__})") from error
    shapes = {item.path: item.axes for item in subject.declared.inputs}
    memory = _Memory()

    def run(dims: Mapping[str, int]) -> Trace:
        def change(path: str, leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            shape = [size_of(axis, dims) for axis in shapes[path]] if path in shapes else leaf.shape
            return torch.empty(shape, dtype=leaf.dtype, device="meta")

        with torch.device("meta"):
            trace, _ = traced(module, arguments.rebuild(subject.example, change), memory)
        if any(word in trace.error for word in _NOT_OF_SIZES):
            raise NoMetaForm(trace.error.splitlines()[0][:160])
        return trace

    first = run(_example_dims(subject))
    if first.error:
        raise NoMetaForm(first.error.splitlines()[0][:160])
    if first.outputs != shapes_of(subject.eager):
        raise NoMetaForm("its outputs have other shapes there")
    return run


def real_run(subject: Subject, make: Callable[[Mapping[str, int]], NamedInputs]) -> Run:
    """What runs the module itself, on inputs made for these sizes."""

    def run(dims: Mapping[str, int]) -> Trace:
        with preserved(subject.module):
            trace, _ = traced(subject.module, make(dims))
        return trace

    return run


def traced(module: torch.nn.Module, inputs: NamedInputs, memory: _Memory | None = None) -> tuple[Trace, Outputs]:
    """One call of forward, with the operators that it runs and the sizes that they give."""
    recorder = _Recorder(memory)
    call = arguments.bind(module, inputs)
    with recorder:
        given = arguments.call(module, call)
    if given.error:
        return Trace(error=given.error), given
    trace = Trace(
        operators=_one_copy(tuple((str(what), len(row)) for what, row in recorder.rows)),
        numbers=tuple(row for _, row in recorder.rows),
        outputs=shapes_of(given),
    )
    return trace, given


@functools.lru_cache(maxsize=64)
def _one_copy(operators: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """One tuple for all equal ones: hundreds of traces have the same operators."""
    return operators


def shapes_of(outputs: Outputs) -> tuple[tuple[int, ...], ...]:
    """The shape of each output; of what is no tensor, none."""
    return tuple(tuple(value.shape) if isinstance(value, torch.Tensor) else () for value in outputs.values)


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's own, not annotated
    """Notes each operator, the sizes of its outputs, and the plain numbers that it is given."""

    def __init__(self, memory: _Memory | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.rows: list[tuple[Any, Numbers]] = []
        self._memory = memory

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = self._memory(func, args, kwargs) if self._memory else func(*args, **kwargs)
        row: list[float] = []
        _sizes(result, row)
        for value in args:
            _plain(value, row)
        for value in kwargs.values():
            _plain(value, row)
        self.rows.append((func, tuple(row)))
        return result


class _Memory:
    """Remembers what operators made of which shapes: torch's own answer takes 0.1 ms and more, for each operator."""

    def __init__(self) -> None:
        self._pure: dict[Any, bool] = {}
        self._made: dict[Any, list[tuple[Any, ...]]] = {}

    def __call__(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func not in self._pure:
            returns = func._schema.returns
            self._pure[func] = not func._schema.is_mutable and all(
                one.alias_info is None and str(one.type) == "Tensor" for one in returns
            )
        if not self._pure[func]:
            return func(*args, **kwargs)
        try:
            key = (func, _key(args), _key(tuple(kwargs.items())))
            made = self._made.get(key)
        except TypeError:  # something that can't be hashed
            return func(*args, **kwargs)
        if made is None:
            result = func(*args, **kwargs)
            found = result if isinstance(result, (tuple, list)) else [result]
            if all(type(one) is torch.Tensor and one.is_meta for one in found):
                self._made[key] = [(one.shape, one.stride(), one.dtype) for one in found]
            return result
        again = [torch.empty_strided(shape, stride, dtype=dtype, device="meta") for shape, stride, dtype in made]
        return again[0] if len(func._schema.returns) == 1 else tuple(again)


def _key(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride(), value.dtype
    if isinstance(value, (tuple, list)):
        return tuple(map(_key, value))
    return type(value), value  # 2 and 2.0 give other dtypes


def _sizes(result: Any, row: list[float]) -> None:
    if isinstance(result, torch.Tensor):
        row.extend(result.shape)
    elif isinstance(result, (tuple, list)):
        for item in result:
            _sizes(item, row)


def _plain(value: Any, row: list[float]) -> None:
    if isinstance(value, (int, float)):
        row.append(value if math.isfinite(value) else 0.0)
    elif isinstance(value, (tuple, list)):
        for item in value:
            _plain(item, row)


def _example_dims(subject: Subject) -> dict[str, int]:
    leaves = arguments.paths(subject.example)
    found: dict[str, int] = {}
    axes = [
        (axis, size)
        for item in subject.declared.inputs
        for axis, size in zip(item.axes, leaves[item.path].shape, strict=True)
        if isinstance(axis, str)
    ]
    for axis, size in sorted(axes, key=lambda one: len(names_in(one[0]))):
        solved = solve(axis, size, found)
        if solved:
            found[solved[0]] = solved[1]
    return found


def _bare_copy(module: torch.nn.Module) -> torch.nn.Module:
    """A deep copy whose tensors have shapes and no data; those in the module's own are never copied."""
    memo: dict[int, Any] = {}
    for part in module.modules():
        for value in _tensors(vars(part)):
            if id(value) not in memo:
                bare = torch.empty_like(value, device="meta")
                wrap = isinstance(value, torch.nn.Parameter)
                memo[id(value)] = torch.nn.Parameter(bare, requires_grad=False) if wrap else bare
        for value in vars(part).values():
            if isinstance(value, torch.jit.ScriptFunction):  # can't be copied, and keeps nothing
                memo[id(value)] = value
    return copy.deepcopy(module, memo)


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        return [one for item in value.values() for one in _tensors(item)]
    if isinstance(value, (list, tuple)):
        return [one for item in value for one in _tensors(item)]
    return []
