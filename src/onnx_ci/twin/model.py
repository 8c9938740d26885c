"""The twin of a file: opened once, run as often as asked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from onnx_ci.twin import weights
from onnx_ci.twin.by_runtime import RuntimeKernels
from onnx_ci.twin.execute import Change, Machine, execute
from onnx_ci.twin.plan import Step, plan_of, plans
from onnx_ci.twin.registry import Unoracled
from onnx_ci.twin.values import Array, Value, widened_value


@dataclass(frozen=True, slots=True)
class TwinRun:
    """What one run gave.

    Attributes:
        outputs: By name, in the file's order; floats as float64, integers and booleans as they are.
        kept: The inner values that were asked for, those of them that the run met.
        by_reference: Operators that only onnx's reference could run, sorted.
    """

    outputs: dict[str, Value]
    kept: dict[str, Value]
    by_reference: list[str]


class Twin:
    """A model in float64.

    Args:
        model: The file's message; its weights may lie beside it.
        base: The folder of the data beside it.
    """

    def __init__(self, model: onnx.ModelProto, base: Path | None = None) -> None:
        self.model, self.base = model, base
        self._plan = plan_of(model)
        self._runtime = RuntimeKernels()

    @classmethod
    def open(cls, path: Path) -> Twin:
        """Opens a file; data beside it is read when its node runs. Its paths are the caller's to check before."""
        return cls(onnx.load(str(path), load_external_data=False), Path(path).resolve().parent)

    def run(
        self,
        feeds: Mapping[str, Any],
        keep: Collection[str] = (),
        change: Change | None = None,
        noise: np.random.Generator | None = None,
    ) -> TwinRun:
        """Runs the main graph.

        Args:
            feeds: Values by input name, in the file's dtypes; None for an optional that is absent.
            keep: Inner values of the main graph to hand back as well.
            change: By name of a float constant, as `float_constants` gives it, what to make of it in this run.
            noise: Draws the last places of whatever is computed, as another order of the sums would.

        Raises:
            Unoracled: An operator has no path in float64, or fails at these inputs.
        """
        return self.run_all(feeds, [change or {}], keep, noise)[0]

    def run_all(
        self,
        feeds: Mapping[str, Any],
        changes: Sequence[Change],
        keep: Collection[str] = (),
        noise: np.random.Generator | None = None,
    ) -> list[TwinRun]:
        """The same for several sets of changes in one pass: each weight is read once, and what is equal done once.

        Raises:
            Unoracled: As `run` does.
        """
        plain = Machine(self.base, self._runtime, noise=noise)
        machines = [replace(plain, change=change) for change in changes]
        with np.errstate(all="ignore"):
            runs = execute(self._plan, self._fed(feeds), machines, keep=frozenset(keep))
        names, listed = self._plan.outputs, sorted(plain.by_reference)
        return [TwinRun(dict(zip(names, outputs, strict=True)), kept, listed) for outputs, kept in runs]

    def float_constants(self) -> Iterator[tuple[str, Array]]:
        """Float constants by name, widened, one in memory at a time.

        Initializers, the tensors of Constant nodes, and the one number that a ConstantOfShape fills its output with;
        those of branches and loops too, where two branches may share a name, and those of functions, with the
        function before the name.
        """
        for name, tensor in self.float_tensors():
            yield name, self.read(tensor)

    def float_tensors(self) -> Iterator[tuple[str, onnx.TensorProto]]:
        """The same as messages, unread."""
        for before, plan in plans(self._plan):
            for tensor in plan.constants.values():
                if tensor.data_type in weights.FLOATS:
                    yield before + tensor.name, tensor
            for step in plan.steps:
                constant = weights.constant_tensor(step.node)
                if constant is not None and constant.data_type in weights.FLOATS:
                    yield before + step.node.output[0], constant

    def read(self, tensor: onnx.TensorProto) -> Array:
        """One of them, widened."""
        return weights.read(tensor, self.base)

    def steps(self) -> Iterator[tuple[str, Step]]:
        """All steps, each with what stands before the names of its graph."""
        for before, plan in plans(self._plan):
            yield from ((before, step) for step in plan.steps)

    def _fed(self, feeds: Mapping[str, Any]) -> dict[str, Value]:
        missing = [name for name in self._plan.inputs if name not in feeds and name not in self._plan.constants]
        if missing:
            raise Unoracled("graph", f"input {missing[0]} is missing")
        return {name: widened_value(feeds[name]) for name in self._plan.inputs if name in feeds}
