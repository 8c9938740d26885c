"""Runs a plan: each step by the first path that takes it; values are dropped after their last use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from onnx_ci.twin import by_reference, weights
from onnx_ci.twin.by_runtime import RuntimeKernels
from onnx_ci.twin.kernels import KERNELS
from onnx_ci.twin.plan import OWN_DOMAINS, Plan, Step
from onnx_ci.twin.registry import Call, Elsewhere, Unoracled
from onnx_ci.twin.values import Array, Value, widened_value

Change = Mapping[str, Callable[[Array], Array]]


@dataclass(slots=True)
class Machine:
    """What all graphs of one run share."""

    base: Path | None
    runtime: RuntimeKernels
    change: Change
    by_reference: set[str] = field(default_factory=set)


class Scope:
    """Names of one graph in one run; what is not among them is looked for in the graph around it."""

    def __init__(self, plan: Plan, values: dict[str, Value], outer: Scope | None, machine: Machine) -> None:
        self.plan, self.values, self.outer, self.machine = plan, values, outer, machine

    def read(self, name: str) -> Value:
        """A value; a weight is read from the file each time, and held by nobody."""
        if name in self.values:
            return self.values[name]
        if name in self.plan.constants:
            return self.changed(name, weights.read(self.plan.constants[name], self.machine.base))
        if name in self.plan.sparse:
            return weights.dense(self.plan.sparse[name], self.machine.base)
        if self.outer is None:
            raise Unoracled("graph", f"value {name} is read before anything writes it")
        return self.outer.read(name)

    def changed(self, name: str, value: Array) -> Array:
        """A constant of the main graph as the run asks for it."""
        change = self.machine.change.get(name) if self.outer is None else None
        return value if change is None or value.dtype != np.float64 else change(value)


def execute(
    plan: Plan, values: dict[str, Value], machine: Machine, outer: Scope | None = None, keep: Collection[str] = ()
) -> tuple[list[Value], dict[str, Value]]:
    """Runs a graph on its inputs; gives its outputs in order, and the inner values that were asked for.

    Raises:
        Unoracled: An operator has no path in float64, or fails at these inputs.
    """
    scope = Scope(plan, values, outer, machine)
    kept = {name: scope.read(name) for name in keep if name in values or name in plan.constants}
    for step in plan.steps:
        made = _run(step, scope)
        for name, value in zip(step.node.output, made, strict=False):
            if name:
                scope.values[name] = value
            if name in keep:
                kept[name] = value
        for name in step.drops:
            scope.values.pop(name, None)
    return [scope.read(name) for name in plan.outputs], kept


def _run(step: Step, scope: Scope) -> Sequence[Value]:
    """One step; whatever goes wrong inside it is said of its operator."""
    node = step.node
    operator = node.op_type if node.domain in OWN_DOMAINS else f"{node.domain}:{node.op_type}"
    try:
        inputs = [scope.read(name) if name else None for name in node.input]
        if step.body is not None:
            return _function(step.body, inputs, scope)
        made = _settled(_by_path(step, operator, inputs, scope))
    except (Unoracled, KeyboardInterrupt):
        raise
    except MemoryError as error:
        raise Unoracled(operator, "not enough memory") from error
    except Exception as error:  # numpy, onnx and ONNX Runtime raise many kinds
        raise Unoracled(operator, f"{type(error).__name__}: {str(error).strip()[:300]}") from error
    if operator == "Constant" and isinstance(made[0], np.ndarray):
        return [scope.changed(node.output[0], made[0])]
    return made


def _function(body: Plan, inputs: list[Value], scope: Scope) -> list[Value]:
    """A function of the file: it sees its inputs and nothing around it, nor are its constants the main graph's."""
    names = dict.fromkeys(body.inputs)
    values = {**names, **dict(zip(body.inputs, inputs, strict=False))}
    closed = Machine(scope.machine.base, scope.machine.runtime, {}, scope.machine.by_reference)
    return execute(body, values, closed)[0]


def _by_path(step: Step, operator: str, inputs: list[Value], scope: Scope) -> Any:
    """The own kernel, else ONNX Runtime's in double, else onnx's reference."""
    node = step.node
    if node.domain not in OWN_DOMAINS:
        raise Unoracled(operator)

    def run(name: str, given: Sequence[Value]) -> list[Value]:
        plan = step.graphs[name]
        return execute(plan, dict(zip(plan.inputs, given, strict=True)), scope.machine, scope)[0]

    own = KERNELS.get(node.op_type)
    if own is not None:
        try:
            return own(Call(node, step.version, step.attributes, run), *inputs)
        except Elsewhere:
            pass
    made = scope.machine.runtime.run(node, step.version, inputs)
    if made is not None:
        return made
    scope.machine.by_reference.add(operator)
    return by_reference.run(node, step.version, inputs)


def _settled(made: Any) -> Sequence[Value]:
    return [widened_value(item) for item in (made if isinstance(made, tuple) else (made,))]
