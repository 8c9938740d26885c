"""Runs a plan: each step by the first path that takes it; values are dropped after their last use.

Several runs that differ in some constants go in step, so that each weight is read once for all of them, and what is
still the same in all is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from onnx_ci.twin import by_reference, weights
from onnx_ci.twin.by_runtime import RuntimeKernels
from onnx_ci.twin.kernels import KERNELS
from onnx_ci.twin.plan import OWN_DOMAINS, Plan, Step, called
from onnx_ci.twin.registry import Call, Elsewhere, Unoracled
from onnx_ci.twin.values import Array, Value, widened_value

_NOISE = 2.0**-44
"""Relative: what float64 loses in a sum of some hundred terms."""
_GIVES_ON = (
    "Abs ArrayFeatureExtractor Cast CastLike Ceil Clip Compress Concat ConcatFromSequence Constant ConstantOfShape"
    " DepthToSpace DequantizeLinear Dropout Expand EyeLike Flatten Floor Gather GatherElements GatherND Hardmax"
    " Identity LeakyRelu Max MaxPool Min NonZero OneHot Pad QuantizeLinear Range Relu Reshape ReverseSequence Round"
    " Scatter ScatterElements ScatterND Sequence SequenceAt Sign Slice SpaceToDepth Split SplitToSequence Squeeze"
    " ThresholdedRelu Tile TopK Transpose Trilu Unique Unsqueeze Where"
)
_EXACT = frozenset(_GIVES_ON.split())
"""Operators that give values on, or choose among them: nothing is rounded there."""
Change = Mapping[str, Callable[[Array], Array]]


@dataclass(frozen=True, slots=True)
class Machine:
    """What all graphs of one run share.

    Attributes:
        base: Folder of the data beside the file.
        runtime: The runtime's kernels.
        change: By name of a float constant, with its function before it, what this run makes of it.
        function: What stands before the names of the function that is run now; "" in the main graph and its branches.
        noise: Draws the last places of whatever is computed; None for none.
        read: Weights that the step of the main graph that runs now has read, by the message they come from.
        by_reference: Operators that only onnx's reference could run.
    """

    base: Path | None
    runtime: RuntimeKernels
    change: Change = field(default_factory=dict)
    function: str = ""
    noise: np.random.Generator | None = None
    read: dict[int, Array] = field(default_factory=dict)
    by_reference: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Scope:
    """Names of one graph in one run; what is not among them is looked for in the graph around it."""

    plan: Plan
    values: dict[str, Value]
    machine: Machine
    outer: Scope | None = None

    def read(self, name: str) -> Value:
        """A value; a weight is read from the file when a step needs it, and held until that step is done."""
        if name in self.values:
            return self.values[name]
        if name in self.plan.constants:
            tensor, held = self.plan.constants[name], self.machine.read
            if id(tensor) not in held:
                held[id(tensor)] = weights.read(tensor, self.machine.base)
            return self.changed(name, held[id(tensor)])
        if name in self.plan.sparse:
            return weights.dense(self.plan.sparse[name], self.machine.base)
        if self.outer is None:
            raise Unoracled("graph", f"value {name} is read before anything writes it")
        return self.outer.read(name)

    def changed(self, name: str, value: Array) -> Array:
        """A constant as the run asks for it."""
        change = self.machine.change.get(self.machine.function + name)
        return value if change is None or value.dtype != np.float64 else change(value)


def execute(
    plan: Plan, values: Mapping[str, Value], machines: Sequence[Machine], keep: Collection[str] = ()
) -> list[tuple[list[Value], dict[str, Value]]]:
    """Runs the main graph on its inputs, once for each machine; gives outputs in order, and what was to be kept.

    Raises:
        Unoracled: An operator has no path in float64, or fails at these inputs.
    """
    scopes = [Scope(plan, dict(values), machine) for machine in machines]
    early = [name for name in keep if name in values or name in plan.constants]
    kept = [{name: scope.read(name) for name in early} for scope in scopes]
    for step in plan.steps:
        for scope, found, made in zip(scopes, kept, _in_step(step, scopes), strict=True):
            found.update((name, value) for name, value in made.items() if name in keep)
            _settle(step, scope, made)
        for machine in machines:
            machine.read.clear()
    return [([scope.read(name) for name in plan.outputs], found) for scope, found in zip(scopes, kept, strict=True)]


def _in_step(step: Step, scopes: Sequence[Scope]) -> list[dict[str, Value]]:
    """One step in every run; a run whose inputs are the very ones of the first takes what that one made."""
    first: Sequence[Value] | None = None
    made: list[dict[str, Value]] = []
    for scope in scopes:
        inputs = _inputs(step, scope)
        same = first is not None and all(a is b for a, b in zip(inputs, first, strict=True))
        if same and not _changed_inside(step, scope):
            outputs: dict[str, Value] = {**made[0]}
        else:
            outputs = _run(step, inputs, scope)
        first = inputs if first is None else first
        made.append(outputs)
    return [_asked(step, scope, outputs) for scope, outputs in zip(scopes, made, strict=True)]


def _changed_inside(step: Step, scope: Scope) -> bool:
    """Whether a step may give something else at the same inputs."""
    return bool(step.graphs) or (step.body is not None and bool(scope.machine.change))


def _asked(step: Step, scope: Scope, made: dict[str, Value]) -> dict[str, Value]:
    """What a step made, and where it is a constant, as the run asks for it."""
    if step.node.op_type not in weights.CONSTANTS or step.body is not None:
        return made
    return {
        name: scope.changed(name, value) if isinstance(value, np.ndarray) else value for name, value in made.items()
    }


def _inner(plan: Plan, inputs: Sequence[Value], machine: Machine, outer: Scope | None) -> list[Value]:
    """A graph inside the main one: its inputs by position, absent ones at the end as None."""
    values = {**dict.fromkeys(plan.inputs), **dict(zip(plan.inputs, inputs, strict=False))}
    scope = Scope(plan, values, machine, outer)
    for step in plan.steps:
        _settle(step, scope, _asked(step, scope, _run(step, _inputs(step, scope), scope)))
    return [scope.read(name) for name in plan.outputs]


def _settle(step: Step, scope: Scope, made: Mapping[str, Value]) -> None:
    scope.values.update(made)
    for name in step.drops:
        scope.values.pop(name, None)


def _inputs(step: Step, scope: Scope) -> list[Value]:
    try:
        return [scope.read(name) if name else None for name in step.node.input]
    except (OSError, ValueError, MemoryError) as error:
        raise Unoracled(_operator(step), f"its weights can't be read: {error}") from error


def _operator(step: Step) -> str:
    node = step.node
    return node.op_type if node.domain in OWN_DOMAINS else f"{node.domain}:{node.op_type}"


def _run(step: Step, inputs: Sequence[Value], scope: Scope) -> dict[str, Value]:
    """One step; whatever goes wrong inside it is said of its operator."""
    machine = scope.machine
    try:
        if step.body is not None:
            # A function sees its inputs and nothing around it.
            within = replace(machine, function=called(step.node))
            made: Sequence[Value] = _inner(step.body, inputs, within, None)
        else:
            made = _settled(_by_path(step, inputs, scope))
            if machine.noise is not None and not step.graphs and step.node.op_type not in _EXACT:
                made = [_noisy(value, machine.noise) for value in made]
    except Unoracled:
        raise
    except MemoryError as error:
        raise Unoracled(_operator(step), "not enough memory") from error
    except Exception as error:  # numpy, onnx and ONNX Runtime raise many kinds
        raise Unoracled(_operator(step), f"{type(error).__name__}: {str(error).strip()[:300]}") from error
    return {name: value for name, value in zip(step.node.output, made, strict=False) if name}


def _noisy(value: Value, noise: np.random.Generator) -> Value:
    """Whole numbers stay: masks and counts are exact in any order."""
    if not isinstance(value, np.ndarray) or value.dtype != np.float64:
        return value
    return np.where(value == np.rint(value), value, value * (1 + _NOISE * noise.uniform(-1, 1, value.shape)))


def _by_path(step: Step, inputs: Sequence[Value], scope: Scope) -> Any:
    """The own kernel, else ONNX Runtime's in double, else onnx's reference."""
    node = step.node
    if node.domain not in OWN_DOMAINS:
        raise Unoracled(_operator(step))

    def run(name: str, given: Sequence[Value]) -> list[Value]:
        return _inner(step.graphs[name], given, scope.machine, scope)

    own = KERNELS.get(node.op_type)
    if own is not None:
        try:
            return own(Call(node, step.version, step.attributes, run), *inputs)
        except Elsewhere:
            pass
    made = scope.machine.runtime.run(node, step.version, inputs)
    if made is not None:
        return made
    scope.machine.by_reference.add(node.op_type)
    return by_reference.run(node, step.version, inputs)


def _settled(made: Any) -> Sequence[Value]:
    return [widened_value(item) for item in (made if isinstance(made, tuple) else (made,))]
