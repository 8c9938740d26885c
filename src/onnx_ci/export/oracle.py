"""The oracle: the module in float64, lifted so that what it hard-codes about precision follows.

A deep copy in double alone is wrong where forward says ``.float()``, makes tensors of its own, or takes an epsilon from
its input's dtype. So inside a call float64 passes for the module's own dtype: whoever asks a tensor for its dtype hears
the original one, and whoever asks for the original, or for any lower one, gets float64.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from onnx_ci.export import arguments
from onnx_ci.export.state import preserved
from onnx_ci.export.types import Call, Outputs

_LIFTED = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
_COMPLEX = {torch.float16: torch.complex32, torch.float32: torch.complex64, torch.float64: torch.complex128}
_CASTS: dict[Any, torch.dtype] = {
    getattr(torch.Tensor, name): torch.complex128 if name in ("cfloat", "chalf") else torch.float64
    for name in ("float", "half", "bfloat16", "cfloat", "chalf")
    if hasattr(torch.Tensor, name)
}
_TYPE_NAMES = {"torch.FloatTensor", "torch.HalfTensor", "torch.BFloat16Tensor"}
_RMS_NORMS = tuple(f for f in (torch.nn.functional.rms_norm, getattr(torch, "rms_norm", None)) if f is not None)


class Unoracled(Exception):
    """The module has no float64 form; the text says why."""


class Oracle:
    """A module in float64, made once and run on many cases.

    Raises:
        Unoracled: It can't be copied or cast.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self._own = _own_dtype(module)
        try:
            self._module = _lifted_copy(module)
        except Exception as error:
            raise Unoracled(f"the module has no copy in float64: {_said(error)}") from error
        self._descent: str | None = None

    @property
    def module(self) -> torch.nn.Module:
        """The copy in float64; whoever changes it puts it back."""
        return self._module

    @contextlib.contextmanager
    def lifted(self, call: Call) -> Iterator[Call]:
        """Inside, `module` may be called with what is given, in float64, and gradients may be taken."""
        args, kwargs = pytree.tree_map_only(torch.Tensor, lift, (call.args, call.kwargs))
        with default_dtype(torch.float64), preserved(self._module), Lift(self._own_at(call)):
            yield Call(args, kwargs)

    def run(self, call: Call) -> Outputs:
        """The outputs in float64; integers and booleans are what they are.

        Raises:
            Unoracled: The module can't run in float64, or leaves it on the way.
        """
        args, kwargs = pytree.tree_map_only(torch.Tensor, lift, (call.args, call.kwargs))
        lifted, mode = Call(args, kwargs), Lift(self._own_at(call))
        outputs = self._run(lifted, mode, contextlib.nullcontext())
        if outputs.error:
            raise Unoracled(f"the module can't run in float64: {outputs.error}")
        for at, value in enumerate(outputs.values):
            if isinstance(value, torch.Tensor) and value.dtype in _LIFTED:
                raise Unoracled(f"output {at} leaves float64 on its way: it came out in {value.dtype}")
        if self._descent is None:  # once is enough; an operator that can't run under a watch leaves it at that
            watch = _Descents(mode)
            self._run(lifted, mode, watch)
            self._descent = watch.found
        if self._descent:
            raise Unoracled(f"the module leaves float64 on its way: {self._descent}")
        return outputs

    def _own_at(self, call: Call) -> torch.dtype:
        """The dtype that float64 stands for; where no number of the module tells, what it was first called with."""
        if self._own is None:
            self._own = _own_dtype_of(call)
        return self._own

    def _run(self, call: Call, mode: Lift, watch: contextlib.AbstractContextManager[Any]) -> Outputs:
        with default_dtype(torch.float64), preserved(self._module):
            with watch, mode:
                given = arguments.call(self._module, call)
            return arguments.copied(given)


def run(module: torch.nn.Module, call: Call) -> Outputs:
    """One case through an oracle of its own; see `Oracle`."""
    return Oracle(module).run(call)


def lift(value: torch.Tensor) -> torch.Tensor:
    """The tensor in float64 (complex128), if it is of a lower precision."""
    return value.to(_LIFTED[value.dtype]) if value.dtype in _LIFTED else value


class Lift(TorchFunctionMode):
    """Lets float64 pass for `own`, the dtype that the module was written for."""

    def __init__(self, own: torch.dtype) -> None:
        super().__init__()
        self.paused = False
        self._own = own
        self._shown = {torch.float64: own, torch.complex128: _COMPLEX.get(own, torch.complex64)}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Answers for one function of torch."""
        if self.paused:
            return func(*args, **(kwargs or {}))
        if getattr(func, "__self__", None) is torch.Tensor.dtype:
            return self._shown.get(args[0].dtype, args[0].dtype)
        if func in _CASTS:
            return args[0].to(_CASTS[func])
        kwargs = dict(kwargs or {})
        args, kwargs = self._lift_arguments(func, args, kwargs)
        if func in _RMS_NORMS:
            args, kwargs = self._with_epsilon(func, args, kwargs)
        return func(*args, **kwargs)

    def _lift_arguments(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        written = args[:1] if _writes_to_first(func) else ()

        def change(value: Any) -> Any:
            if isinstance(value, torch.dtype):
                return _LIFTED.get(value, value)
            if isinstance(value, torch.Tensor) and not any(value is one for one in written):
                return lift(value)
            return value

        if func is torch.Tensor.type and len(args) > 1 and args[1] in _TYPE_NAMES:
            return (args[0], torch.float64), kwargs
        args, kwargs = pytree.tree_map(change, (tuple(args), kwargs))
        return args, kwargs

    def _with_epsilon(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A root mean square norm without an epsilon takes that of its input's dtype: the original one's."""
        names = ("input", "normalized_shape", "weight", "eps")
        given = dict(zip(names, args, strict=False)) | kwargs
        if given.get("eps") is None:
            given["eps"] = torch.finfo(self._own).eps
        return (), given


class _Descents(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's own, not annotated
    """Finds an operator that makes a lower precision out of float64, below all that `Lift` can reach: scripted code."""

    def __init__(self, mode: Lift) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = ""
        self._mode = mode

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before, self._mode.paused = self._mode.paused, True  # dtypes are to be the real ones here
        try:
            result = func(*args, **(kwargs or {}))
            if not self.found and _descends(args, kwargs, result):
                self.found = f"{str(func).removesuffix('.default')} makes a lower precision of it"
            return result
        finally:
            self._mode.paused = before


def _descends(args: Any, kwargs: Any, result: Any) -> bool:
    made, given = (
        {value.dtype for value in pytree.tree_leaves(tree) if isinstance(value, torch.Tensor)}
        for tree in (result, (args, kwargs))
    )
    return bool(made & _LIFTED.keys()) and bool(given & set(_LIFTED.values()))


def _writes_to_first(func: Callable[..., Any]) -> bool:
    name = getattr(func, "__name__", "")
    return name in ("__setitem__", "set_", "__set__") or (name.endswith("_") and not name.endswith("__"))


def _lifted_copy(module: torch.nn.Module) -> torch.nn.Module:
    """A deep copy whose floating tensors are float64 from the start: a copy in the module's own dtype is never made.

    Reached are parameters, buffers, and the plain tensors that hang on modules; integers stay what they are.
    """
    memo: dict[int, Any] = {}
    for part in module.modules():
        for value in _tensors(vars(part)):
            if value.dtype in _LIFTED and id(value) not in memo:
                lifted = lift(value.detach())
                wrap = isinstance(value, torch.nn.Parameter)
                memo[id(value)] = torch.nn.Parameter(lifted, requires_grad=False) if wrap else lifted
        for value in vars(part).values():
            if isinstance(value, torch.jit.ScriptFunction):  # can't be copied, and keeps nothing
                memo[id(value)] = value
    return copy.deepcopy(module, memo)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(item)


def _own_dtype(module: torch.nn.Module) -> torch.dtype | None:
    """The floating dtype that most of the module's numbers have; None if it has none."""
    counts: dict[torch.dtype, int] = {}
    for value in [*module.parameters(), *module.buffers()]:
        if value.dtype.is_floating_point:
            counts[value.dtype] = counts.get(value.dtype, 0) + value.numel()
    return max(counts, key=counts.__getitem__) if counts else None


def _own_dtype_of(call: Call) -> torch.dtype:
    for value in pytree.tree_leaves((call.args, call.kwargs)):
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
            return value.dtype
    return torch.get_default_dtype()


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Inside, tensors that are made without a dtype have this one."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}".rstrip(": ")
