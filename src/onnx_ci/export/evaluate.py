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
from onnx_ci.export.state import preserved
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
    oracle, no_oracle = _oracle(subject.module)
    varying = _varying(subject, graph)
    for case in cases:
        leaves = arguments.leaves(subject.module, case.inputs)
        problem = _unfeedable(subject.leaves, leaves)
        if problem or case.problems:
            seen.findings.append(contradicts(case, problem))
        if problem:
            seen.notes.append(f"{case.name} is left out: {problem}")
            continue
        index = len(seen.cases)
        log.say(f"PyTorch runs {case_text(case.name, case.dims)}")
        called = redraw.call(subject, case)
        call, given = called.call, called.given
        seen.findings += called.findings
        fed = {leaf.path: leaf.value for leaf in arguments.leaves(subject.module, called.case.inputs)}
        if given.error and not _worth_keeping(subject, case, given.error, seen):
            continue
        advisory = case.advisory or (special.ARBITRARY if called.is_blind and case.origin != "user" else "")
        target = folder / f"test_data_set_{index}"
        tensors.write_values(
            target, "input", list(graph.inputs), [arrays.to_value(fed[leaf.path]) for leaf in graph.inputs.values()]
        )
        made = Case(index=index, name=case.name, origin=case.origin, why=case.why, dims=dict(case.dims))
        if given.error:
            seen.cases.append(replace(made, refused=given.error))
            continue
        values = {name: arrays.to_value(given.values[at]) for name, at in graph.outputs.items()}
        tensors.write_values(target, "output", list(values), list(values.values()))
        exact, truth, unoracled = _truth(oracle, no_oracle, subject, call, graph, values)
        moves: Mapping[str, Move] = {}
        if case.origin == "special" and not advisory:
            doubt = steady.doubt(oracle, subject, graph.model, called.case, exact, given)
            unable = f"there is no float64 form to judge such values by: {unoracled}"
            advisory = unable if exact is None else doubt.why
            moves = {name: doubt.moves[at] for name, at in graph.outputs.items()} if doubt.moves else {}
        if not unoracled:
            tensors.write_values(target, "oracle", list(truth), list(truth.values()))
        outputs = [_figures(name, value, truth.get(name), moves.get(name, Move())) for name, value in values.items()]
        made = replace(made, outputs=outputs, unoracled=unoracled, nondeterministic=varying, advisory=advisory)
        made = replace(made, blind=called.is_blind)
        seen.cases.append(made)
        for output in [] if made.is_special else outputs:
            seen.sizes.setdefault(output.name, []).append(output.shape)
    return _ever_seeing(seen)


def _ever_seeing(seen: Evaluation) -> Evaluation:
    """Where queries see nothing in every ordinary case, the module is made so, and is judged by these."""
    usual = [case for case in seen.cases if case.origin != "special" and not case.refused]
    if usual and all(case.advisory == special.ARBITRARY for case in usual):
        seen.cases = [replace(case, advisory="") if case in usual else case for case in seen.cases]
        for output in (output for case in usual for output in case.outputs):
            seen.sizes.setdefault(output.name, []).append(output.shape)
    return seen


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
    with preserved(subject.module):
        again = arguments.copied(arguments.call(subject.module, subject.call))
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
    promised = [n for n, spec in specs.items() if spec and (spec.min is not None or spec.max is not None)]
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
