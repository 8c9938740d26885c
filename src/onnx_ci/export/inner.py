"""The inner values of the captured program: in its own dtype, and in float64 as the oracle runs the module."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import torch

from onnx_ci.artifact.tensors import Value
from onnx_ci.export import arguments, arrays
from onnx_ci.export.oracle import Lift, default_dtype, lift
from onnx_ci.export.state import RandomState
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import NamedInputs
from onnx_ci.numerics.dtypes import float_dtype

Keep = Callable[[str, Any], None]


class NotReplayed(Exception):
    """The captured program can't be run again on these inputs; the text says why."""


class Replay:
    """The decomposed program, from which the graph was translated, on one set of inputs: a reference for inner values.

    Values go by their names in the graph. They are made anew for each call, so that only what is asked for is held.

    Raises:
        NotReplayed: There is no program, or the inputs do not fit it.
    """

    def __init__(self, subject: Subject, graph: Graph, inputs: NamedInputs) -> None:
        if graph.decomposed is None:
            raise NotReplayed("the older exporter leaves no program to compare with")
        self._program = graph.decomposed
        self._nodes = {node.name: node for node in self._program.graph.nodes}
        self._fx = {name: fx for name, fx in graph.fx.items() if fx in self._nodes}
        self._given = self._arguments([leaf.value for leaf in arguments.leaves(subject.module, inputs)])
        self._own = _floating_dtype(self._given)
        self._sizes: dict[str, int] = {}

    def sizes(self) -> Mapping[str, int]:
        """The values that have a counterpart in the graph, with the bytes of each."""
        if not self._sizes:
            bytes_of: dict[str, int] = {}

            def note(fx: str, value: Any) -> None:
                if isinstance(value, torch.Tensor):
                    bytes_of[fx] = value.numel() * value.element_size()
                elif isinstance(value, (int, float)):
                    bytes_of[fx] = 8

            self._run(self._fx.values(), note)
            self._sizes = {name: bytes_of[fx] for name, fx in self._fx.items() if fx in bytes_of}
        return self._sizes

    def expected(self, names: Sequence[str]) -> dict[str, Value]:
        """In the program's own dtype."""
        return self._values(names, lifted=False)

    def exact(self, names: Sequence[str]) -> dict[str, Value]:
        """In float64; empty where the program can't run there."""
        try:
            return self._values(names, lifted=True)
        except NotReplayed:
            return {}

    def exact_from(self, name: str, given: Mapping[str, Value], part: onnx.ModelProto) -> Value:
        """One value in float64, from these values of the graph in the place of the program's own."""
        known = {}
        for other, value in given.items():
            if other in self._fx and isinstance(value, np.ndarray):
                node = self._nodes[self._fx[other]]
                known[node] = _as_given(value, node)
        try:
            return self._values([name], lifted=True, known=known).get(name)
        except NotReplayed:
            return None

    def _values(
        self, names: Sequence[str], *, lifted: bool, known: Mapping[torch.fx.Node, Any] | None = None
    ) -> dict[str, Value]:
        made: dict[str, Value] = {}

        def keep(fx: str, value: Any) -> None:
            made[fx] = arrays.to_value(value)

        self._run([self._fx[name] for name in names], keep, lifted=lifted, known=known)
        return {name: made[self._fx[name]] for name in names if self._fx[name] in made}

    def _run(
        self,
        wanted: Collection[str],
        keep: Keep,
        *,
        lifted: bool = False,
        known: Mapping[torch.fx.Node, Any] | None = None,
    ) -> None:
        known = dict(known or {})
        needed = _needed([self._nodes[name] for name in wanted], known)
        asked = set(wanted)

        def note(name: str, value: Any) -> None:
            if name in asked:
                keep(name, value)

        run = _Interpreter(self._program.graph_module, needed, note)
        given = [lift(item) if lifted and isinstance(item, torch.Tensor) else item for item in self._given]
        random = RandomState.now()
        try:
            with torch.no_grad(), contextlib.ExitStack() as modes:
                if lifted:
                    modes.enter_context(default_dtype(torch.float64))
                    modes.enter_context(Lift(self._own))
                run.run(*given, initial_env=known)
        except Exception as error:  # whatever an operator says of these inputs
            raise NotReplayed(f"{type(error).__name__}: {str(error).splitlines()[0][:200]}") from error
        finally:
            random.restore()

    def _arguments(self, leaves: Sequence[Any]) -> list[Any]:
        program, given = self._program, []
        users = iter(leaves)
        for spec in program.graph_signature.input_specs:
            kind = spec.kind.name
            if kind == "USER_INPUT":
                try:
                    given.append(next(users))
                except StopIteration:
                    raise NotReplayed("the program takes more inputs than the case has") from None
            elif spec.target in program.state_dict:
                given.append(program.state_dict[spec.target].detach())
            elif spec.target in program.constants:
                given.append(program.constants[spec.target])
            else:
                raise NotReplayed(f"the program takes a {kind.lower().replace('_', ' ')}, which it does not hold")
        if next(users, None) is not None:
            raise NotReplayed("the case has more inputs than the program takes")
        return given


class _Interpreter(torch.fx.Interpreter):
    """Runs only what is needed, and no assert: whether a size was foreseen is told elsewhere."""

    def __init__(
        self, module: torch.fx.GraphModule, needed: set[torch.fx.Node], keep: Callable[[str, Any], Any]
    ) -> None:
        super().__init__(module)
        self._needed, self._keep = needed, keep

    def run_node(self, n: torch.fx.Node) -> Any:
        """One node; nothing of what nobody asked for."""
        if n.op == "output" or (n.op != "placeholder" and n not in self._needed):
            return None
        value = super().run_node(n)
        if n in self._needed:
            self._keep(n.name, value)
        return value


def _needed(wanted: Sequence[torch.fx.Node], known: Mapping[torch.fx.Node, Any]) -> set[torch.fx.Node]:
    found, todo = set[torch.fx.Node](), list(wanted)
    while todo:
        node = todo.pop()
        if node not in found and node not in known:
            found.add(node)
            todo += node.all_input_nodes
    return found


def _as_given(value: np.ndarray[Any, Any], node: torch.fx.Node) -> Any:
    """A value of the graph as the program's node gives it, in float64."""
    meta = node.meta.get("val")
    if isinstance(meta, (int, torch.SymInt)):
        return int(value.reshape(-1)[0])
    wide = value.astype(np.float64) if float_dtype(value.dtype) is not None else value
    tensor = torch.from_numpy(np.ascontiguousarray(wide))
    if not isinstance(meta, torch.Tensor):
        return tensor
    return (torch.view_as_complex(tensor) if meta.is_complex() else tensor).to(meta.device)


def _floating_dtype(given: Sequence[Any]) -> torch.dtype:
    counts: Counter[torch.dtype] = Counter()
    for value in given:
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            counts[value.dtype] += value.numel()
    return counts.most_common(1)[0][0] if counts else torch.get_default_dtype()
