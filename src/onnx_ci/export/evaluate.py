"""Runs the module on every case, in its own dtype and in float64, and writes what it gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onnx_ci.artifact import log, tensors
from onnx_ci.artifact.tensors import Value
from onnx_ci.export import arguments, arrays, redraw, steady
from onnx_ci.export.agreement import differ
from onnx_ci.export.oracle import Oracle, Unoracled
from onnx_ci.export.ranges import is_declared
from onnx_ci.export.redraw import Called
from onnx_ci.export.state import answer
from onnx_ci.export.steady import Move
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import Leaf, Outputs, RunCase
from onnx_ci.numerics import special
from onnx_ci.numerics.dtypes import float_dtype
from onnx_ci.numerics.figures import relative_error
from onnx_ci.numerics.words import case_text
from onnx_ci.records.cases import BatchIdentity, Case, CaseOutput
from onnx_ci.records.result import Finding, finding


@dataclass(slots=True)
class Evaluation:
    """What the cases showed.

    Attributes:
        sizes: For each output of the file the shapes that were seen.
        notes: Cases that were left out, a sentence each.
        batch: Which cases are one batch in parts and in another order.
    """

    cases: list[Case] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    sizes: dict[str, list[list[int]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    batch: BatchIdentity = field(default_factory=BatchIdentity)


def evaluate(subject: Subject, graph: Graph, cases: Sequence[RunCase], folder: Path) -> Evaluation:
    """Evaluates each case and writes its ``test_data_set_<n>`` into the folder.

    A case that can't be fed to the file at all is a finding and is left out; one that the module refuses stays, without
    outputs.
    """
    seen = Evaluation()
    runs = _Runs(subject, graph, folder, *_oracle(subject.module), _varying(subject, graph))
    for case in cases:
        problem = _unfeedable(subject.leaves, arguments.leaves(subject.module, case.inputs))
        if problem or case.problems:
            seen.findings.append(contradicts(case, problem))
        if problem:
            seen.notes.append(f"{case.name} is left out: {problem}")
        else:
            runs.run(case, seen)
    seen.cases = _ever_seeing(seen.cases)
    for output in (output for case in seen.cases if not case.is_special for output in case.outputs):
        seen.sizes.setdefault(output.name, []).append(output.shape)
    return seen


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs cases one by one, and writes them.

    Attributes:
        oracle: None where the module has no float64 form, for the reason in `no_oracle`.
        varying: Outputs that differ from call to call.
    """

    subject: Subject
    graph: Graph
    folder: Path
    oracle: Oracle | None
    no_oracle: str
    varying: list[str]

    def run(self, case: RunCase, seen: Evaluation) -> None:
        """One case: what it showed, and the case itself unless it is left out."""
        log.say(f"PyTorch runs {case_text(case.name, case.dims)}")
        called = redraw.call(self.subject, case)
        error = called.given.error
        seen.findings += called.findings
        if error and not _worth_keeping(self.subject, case, error, seen):
            return
        made = Case(index=len(seen.cases), name=case.name, origin=case.origin, why=case.why, dims=dict(case.dims))
        target = self.folder / f"test_data_set_{made.index}"
        fed = {leaf.path: leaf.value for leaf in arguments.leaves(self.subject.module, called.case.inputs)}
        inputs = [arrays.to_value(fed[leaf.path]) for leaf in self.graph.inputs.values()]
        tensors.write_values(target, "input", list(self.graph.inputs), inputs)
        seen.cases.append(replace(made, refused=error) if error else self._answered(made, case, called, target))

    def _answered(self, made: Case, case: RunCase, called: Called, target: Path) -> Case:
        """The case with its outputs, which are written, and what is known of them."""
        given, outputs = called.given, self.graph.outputs
        values = {name: arrays.to_value(given.values[at]) for name, at in outputs.items()}
        tensors.write_values(target, "output", list(values), list(values.values()))
        exact, truth, unoracled = _truth(self.oracle, self.no_oracle, self.subject, called.call, self.graph, values)
        advisory = case.advisory or (special.ARBITRARY if called.is_blind and case.origin != "user" else "")
        moves: Mapping[str, Move] = {}
        if case.origin == "special" and not advisory:
            doubt = steady.doubt(self.oracle, self.subject, self.graph.model, called.case, exact, given)
            unable = f"there is no float64 form to judge such values by: {unoracled}"
            advisory = unable if exact is None else doubt.why
            moves = {name: doubt.moves[at] for name, at in outputs.items()} if doubt.moves else {}
        if not unoracled:
            tensors.write_values(target, "oracle", list(truth), list(truth.values()))
        return replace(
            made,
            outputs=[_figures(name, value, truth.get(name), moves.get(name, Move())) for name, value in values.items()],
            unoracled=unoracled,
            nondeterministic=self.varying,
            advisory=advisory,
            blind=called.is_blind,
        )


def _ever_seeing(cases: Sequence[Case]) -> list[Case]:
    """Where queries see nothing in every ordinary case, the module is made so, and is judged by these."""
    usual = [case for case in cases if case.origin != "special" and not case.refused]
    if not usual or any(case.advisory != special.ARBITRARY for case in usual):
        return list(cases)
    return [case if case.origin == "special" else replace(case, advisory="") for case in cases]


def _oracle(module: torch.nn.Module) -> tuple[Oracle | None, str]:
    try:
        return Oracle(module), ""
    except Unoracled as error:
        return None, str(error)


def _truth(
    oracle: Oracle | None, no_oracle: str, subject: Subject, call: Any, graph: Graph, values: dict[str, Value]
) -> tuple[Outputs | None, dict[str, Value], str]:
    """The outputs in float64, the same by the file's names, or why there are none."""
    if oracle is None:
        return None, {}, no_oracle
    try:
        given = oracle.run(call)
    except Unoracled as error:
        return None, {}, str(error)
    if len(given.values) != len(subject.eager.values):
        return None, {}, "the module gives other outputs in float64"
    truth = {name: arrays.to_value(given.values[at]) for name, at in graph.outputs.items()}
    for name, value in values.items():
        if _shape(value) != _shape(truth[name]):
            said = f"{name} has shape {_shape(truth[name])} in float64, and {_shape(value)} in its own dtype"
            return None, {}, said
    return given, truth, ""


def _varying(subject: Subject, graph: Graph) -> list[str]:
    """Outputs that differ when the module is called a second time on the example, as it stands."""
    again = answer(subject.module, subject.call)
    if again.error or len(again.values) != len(subject.eager.values):
        return list(graph.outputs)
    return [name for name, at in graph.outputs.items() if differ(_only(subject.eager, at), _only(again, at))]


def _only(outputs: Outputs, at: int) -> Outputs:
    return Outputs([outputs.values[at]], [outputs.keys[at]])


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _unfeedable(example: Sequence[Leaf], leaves: Sequence[Leaf]) -> str:
    """Why a case can't be put into the file: other tensors than the example has, or other frozen values."""
    here = {leaf.path: leaf for leaf in leaves}
    for leaf in example:
        found = here.get(leaf.path)
        if found is None:
            if leaf.is_tensor or leaf.value is not None:
                return f"it has no {leaf.path}, which the export example has"
        elif found.is_tensor != leaf.is_tensor:
            has, lacks = ("it", "the export example") if found.is_tensor else ("the export example", "it")
            return f"{has} gives a tensor for {leaf.path}, and {lacks} does not"
        elif not leaf.is_tensor and not _same(found.value, leaf.value):
            return f"{leaf.path} is {found.value!r:.40}, and {leaf.value!r:.40} is frozen into the file"
    known = {leaf.path for leaf in example}
    extra = [leaf.path for leaf in leaves if leaf.path not in known and leaf.value is not None]
    return f"it has {', '.join(extra)}, which the export example lacks" if extra else ""


def contradicts(case: RunCase, problem: str = "") -> Finding:
    """Says how a case contradicts the declaration, or why it can't be put into the file."""
    rule = "contract.frozen-argument" if problem else "contract.case"
    said = problem or "; ".join(case.problems)
    hint = (
        "Make it a tensor, or export a variant for each value: everything that is no tensor becomes a constant."
        if problem
        else "Widen the declaration, or take the case out: one of the two is not what production sends."
    )
    return finding(rule, "fail", case.name, f"the case {case.name} does not fit what is exported: {said}", hint=hint)


def _worth_keeping(subject: Subject, case: RunCase, error: str, seen: Evaluation) -> bool:
    """Judges a refusal: inside a declared range, or of a user's case, it is a finding; of ours it is none."""
    said = error.splitlines()[0][:200]
    example = next((c.dims for c in seen.cases), {})
    moved = [name for name, size in case.dims.items() if size != example.get(name)] or list(case.dims)
    specs = {name: subject.declared.dims.get(name) for name in moved}
    promised = [n for n, spec in specs.items() if is_declared(spec)]
    ours = case.origin == "boundary" and (not promised or promised != moved)
    if ours or case.origin == "special":
        seen.notes.append(f"{case.name} is left out: the module itself refuses it ({said})")
        return False
    at = ", ".join(f"{name} = {case.dims[name]}" for name in promised or moved)
    ranges = f" inside the declared range of {', '.join(promised)}" if promised else ""
    seen.findings.append(
        finding(
            "contract.declared-size", "fail", ", ".join(promised) or case.name,
            f"the PyTorch module itself refuses the case {case.name} ({at or 'fixed sizes'}){ranges}: {said}",
            hint=f"Declare the range that the module can serve under {subject.where}.dims, or widen the module.",
            data={"case": case.name, "dims": case.dims},
        )
    )  # fmt: skip
    return True


def _figures(name: str, value: Value, truth: Value, move: Move) -> CaseOutput:
    return CaseOutput(
        name=name,
        dtype=tensors.dtype_name(value),
        shape=_shape(value),
        e_torch=_error(value, truth),
        sway=move.sway,
        firm=move.firm,
    )


def _error(value: Value, truth: Value) -> float | None:
    if not isinstance(value, np.ndarray) or not isinstance(truth, np.ndarray):
        return None
    return relative_error(value, truth) if float_dtype(value.dtype) is not None else None


def _shape(value: Value) -> list[int]:
    if isinstance(value, np.ndarray):
        return list(value.shape)
    return [] if value is None else [len(value)]
