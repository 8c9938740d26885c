"""One of the two modules of a rewrite check: forward and gradients in float64, or forward alone in its own dtype."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from onnx_ci.errors import OnnxCiError
from onnx_ci.export import arguments
from onnx_ci.export.gaps import inexact, real
from onnx_ci.export.oracle import Oracle, Unoracled, lift
from onnx_ci.export.shared import tensors
from onnx_ci.export.state import answer, preserved
from onnx_ci.export.types import Call, NamedInputs, Outputs

Gradient = torch.Tensor | None
"""None where nothing of it reaches the outputs."""


@dataclass(frozen=True, slots=True)
class Gradients:
    """Of one scalar: by path of the input, and by name of the parameter.

    Attributes:
        cut: Positions of the outputs that were asked for and have no gradient.
        error: What was raised instead, as "Type: message"; then there are no gradients.
    """

    inputs: dict[str, Gradient] = field(default_factory=dict)
    parameters: dict[str, Gradient] = field(default_factory=dict)
    cut: list[int] = field(default_factory=list)
    error: str = ""


class Side:
    """A module in eval mode, its copy in float64, and how it is called.

    Attributes:
        no_oracle: Why there is no copy in float64; empty where there is one.
    """

    def __init__(self, module: torch.nn.Module, like: torch.nn.Module | None = None) -> None:
        """`like` is the module whose calls this one can be given by position, where its own names differ."""
        self.module, self._like = module, like
        self._own: torch.nn.Module | None = None
        self.no_oracle = ""
        self.oracle: Oracle | None = None
        try:
            self.oracle = Oracle(module)
            self.oracle.module.eval()
        except Unoracled as error:
            self.no_oracle = str(error)

    def bind(self, inputs: NamedInputs) -> Call:
        """The call that these inputs make, by name, else in the order of the other module's forward.

        Raises:
            OnnxCiError: Neither fits.
        """
        try:
            return arguments.bind(self.module, inputs)
        except OnnxCiError:
            if self._like is None:
                raise
            call = arguments.bind(self._like, inputs)
            if call.kwargs:
                raise
            return call

    def exact(self, inputs: NamedInputs) -> Outputs:
        """The outputs in float64.

        Raises:
            Unoracled: There are none.
        """
        if self.oracle is None:
            raise Unoracled(self.no_oracle)
        return self.oracle.run(self.bind(inputs))

    def own(self, inputs: NamedInputs) -> Outputs:
        """The outputs in the module's own dtype; what it raises is their error."""
        if self._own is None:
            self._own = _eval_copy(self.module)
        try:
            call = self.bind(inputs)
        except OnnxCiError as error:
            return Outputs([], [], f"{type(error).__name__}: {error}")
        return answer(self._own, call)

    def gradients(self, inputs: NamedInputs, weights: Mapping[int, torch.Tensor]) -> Gradients:
        """The gradients of ``sum(output * weight)`` over the outputs at these positions, in float64."""
        oracle = self.oracle
        assert oracle is not None
        return self._gradients(inputs, weights, oracle.module, oracle.lifted, lift)

    def own_gradients(self, inputs: NamedInputs, weights: Mapping[int, torch.Tensor]) -> Gradients:
        """The same in the module's own dtype, on a copy; an error where it can't be copied."""
        try:
            module = copy.deepcopy(self.module).eval()
        except Exception as error:
            return Gradients(error=str(error))

        @contextlib.contextmanager
        def plain(call: Call) -> Iterator[Call]:
            with preserved(module):
                yield call

        return self._gradients(inputs, weights, module, plain, lambda value: value)

    def _gradients(
        self,
        inputs: NamedInputs,
        weights: Mapping[int, torch.Tensor],
        module: torch.nn.Module,
        ready: Callable[[Call], contextlib.AbstractContextManager[Call]],
        cast: Callable[[torch.Tensor], torch.Tensor],
    ) -> Gradients:
        leaves: dict[str, torch.Tensor] = {}

        def leaf(path: str, value: Any) -> Any:
            if not isinstance(value, torch.Tensor) or not inexact(value):
                return value
            leaves[path] = cast(value.detach()).clone().requires_grad_()
            return leaves[path].clone()  # forward may write to what it is given, and no leaf lets itself be written to

        call = self.bind(arguments.rebuild(inputs, leaf))
        learned = {name: value for name, value in tensors(module).items() if inexact(value)}
        wanted = [*leaves.values(), *learned.values()]
        found: Sequence[Gradient] = [None] * len(wanted)
        try:
            with _learning(learned.values()), ready(call) as made, torch.enable_grad():
                given = arguments.collect(module(*made.args, **made.kwargs))
                open_ = {at: given.values[at] for at in weights if given.values[at].requires_grad}
                if open_:
                    total = torch.stack([_inner(value, weights[at]) for at, value in open_.items()]).sum()
                    found = torch.autograd.grad(total, wanted, allow_unused=True)
        except Exception as error:  # whatever the user's code raises when gradients are on
            said = str(error).strip().splitlines()
            return Gradients(error=f"{type(error).__name__}: {said[0] if said else ''}".rstrip(": "))
        return Gradients(
            inputs=dict(zip(leaves, found[: len(leaves)], strict=True)),
            parameters=dict(zip(learned, found[len(leaves) :], strict=True)),
            cut=[at for at in weights if at not in open_],
        )

    @contextlib.contextmanager
    def moved(self, directions: Mapping[str, torch.Tensor], step: float) -> Iterator[None]:
        """Inside, the parameters of the copy in float64 are `step` further in these directions."""
        assert self.oracle is not None
        held = tensors(self.oracle.module)
        before = {name: held[name].detach().clone() for name in directions}
        with torch.no_grad():
            for name, direction in directions.items():
                held[name].add_(direction, alpha=step)
            try:
                yield
            finally:
                for name, value in before.items():
                    held[name].copy_(value)


def slope(evaluate: Callable[[float], float], step: float) -> tuple[float, float, float]:
    """The derivative at 0 from the right and from the left, and what either may err.

    Args:
        evaluate: The change of the function against its value at 0.
        step: The larger of the two steps that are taken.
    """
    right, left = ([evaluate(sign * size) / (sign * size) for size in (step, step / 2)] for sign in (1.0, -1.0))
    return right[1], left[1], 2 * max(abs(right[0] - right[1]), abs(left[0] - left[1]))


def inner(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> float:
    """The inner product over all tensors, complex ones as pairs of real ones."""
    return float(sum(_inner(value, other[name]).item() for name, value in one.items()))


def _inner(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return (real(one) * real(other)).sum()


@contextlib.contextmanager
def _learning(parameters: Iterable[torch.Tensor]) -> Iterator[None]:
    before = [(value, value.requires_grad) for value in parameters]
    try:
        for value, _ in before:
            value.requires_grad_()
        yield
    finally:
        for value, learned in before:
            value.requires_grad_(learned)


def _eval_copy(module: torch.nn.Module) -> torch.nn.Module:
    """Itself where it is in eval mode already, or can't be copied: then its mode is another rule's finding."""
    if not any(part.training for part in module.modules()):
        return module
    try:
        return copy.deepcopy(module).eval()
    except Exception:
        return module
