"""Runs the written file on the CPU provider where the capture assumed something: at a size that it excludes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onnx_ci.artifact import layout, log
from onnx_ci.artifact.tensors import Value
from onnx_ci.export import arguments, arrays, cases, derived, guards
from onnx_ci.export.guards import Restriction
from onnx_ci.export.places import spot
from onnx_ci.export.ranges import is_declared
from onnx_ci.export.state import answer
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import RunCase
from onnx_ci.numerics.figures import relative_error
from onnx_ci.numerics.layers import nonfinite_fault
from onnx_ci.numerics.words import case_text
from onnx_ci.records.model import CPU
from onnx_ci.records.result import Finding, finding, worst

_AGREES = 1e-3
"""relL2 below which a file is taken to compute the same function at a size; parity judges the rest."""


class File:
    """The written file on the CPU provider, for a few runs beside the module."""

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        import onnxruntime  # late: an export that stops before the file needs none of it

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4  # what goes wrong is raised as well
        path = str((folder / layout.MODEL).resolve())
        self._session: Any = onnxruntime.InferenceSession(path, options, providers=[CPU])
        self.inputs = [item.name for item in self._session.get_inputs()]
        self._names = [item.name for item in self._session.get_outputs()]

    def run(self, feeds: dict[str, Value]) -> dict[str, Value]:
        """One run, by name."""
        return dict(zip(self._names, self._session.run(None, feeds), strict=True))


def feeds(subject: Subject, graph: Graph, case: RunCase) -> dict[str, Value]:
    """The arrays of a case by the file's input names."""
    leaves = {leaf.path: leaf.value for leaf in arguments.leaves(subject.module, case.inputs)}
    return {name: arrays.to_value(leaves[leaf.path]) for name, leaf in graph.inputs.items()}


REFUSED = "the module itself refuses"
AGREED = "the file gives PyTorch's outputs"


class Probe:
    """A module and its file, tried beside each other; the file is opened at the first case, once for all."""

    def __init__(self, subject: Subject, graph: Graph, folder: Path) -> None:
        self.subject, self.graph = subject, graph
        self._folder = folder
        self._opened: File | None = None

    def tried(self, case: RunCase, at: str, *, agrees: float = _AGREES) -> str:
        """What the two do in a case, in a sentence that begins with `AGREED`, `REFUSED` or a fault."""
        module = self.subject.module
        given = answer(module, arguments.bind(module, case.inputs))
        if given.error:
            return f"{REFUSED} {at} ({given.error.splitlines()[0][:160]})"
        expected = {name: arrays.to_value(given.values[place]) for name, place in self.graph.outputs.items()}
        log.say(f"ONNX Runtime runs {case_text(case.name, case.dims)}, which the export leaves out")
        try:
            actual = self._file().run(feeds(self.subject, self.graph, case))
        except Exception as error:  # ONNX Runtime's errors have no common base
            return f"PyTorch runs and ONNX Runtime fails ({str(error).splitlines()[0][:160]})"
        problem = next((said for name in expected if (said := _differs(expected[name], actual[name], agrees))), "")
        return f"the file {problem}" if problem else AGREED

    def _file(self) -> File:
        self._opened = self._opened or File(self._folder)
        return self._opened


def judge(probe: Probe, example: RunCase, user: Sequence[RunCase]) -> tuple[list[Finding], dict[str, int]]:
    """Judges each restriction by what the module and the file do at sizes that it excludes.

    Returns:
        Findings, and for dims without a declared range the number that their sizes must be a multiple of.
    """
    subject, graph = probe.subject, probe.graph
    found, steps = dict[tuple[str, ...], Finding](), dict[str, int]()
    for item in graph.restrictions:
        seen = [_probe(probe, sizes, example, user) for sizes in _nearest(item)]
        told = [one for one in seen if one]
        undeclared = not any(is_declared(subject.declared.dims.get(name)) for name in item.dims)
        if undeclared and told and all(one.startswith(REFUSED) for one in told):
            for name, step in guards.steps(item, graph.reading, subject.declared).items():
                steps[name] = math.lcm(step, steps.get(name, 1))
        made = _finding(subject, item, told, undeclared=undeclared)
        known = found.get(tuple(item.dims))  # one cause assumes several things of one dim: the worst is told
        if known is None or worst([known.status, made.status]) != known.status:
            found[tuple(item.dims)] = made
    return list(found.values()), steps


def _finding(subject: Subject, item: Restriction, told: list[str], *, undeclared: bool) -> Finding:
    at = spot(item.place)
    size = ", ".join(f"{name} = {value}" for name, value in item.excluded[0].items())
    said = _said(item)
    data = {"condition": item.text, "excluded": item.excluded[:10]}
    subject_name = ", ".join(item.dims)
    refused = [one for one in told if one.startswith(REFUSED)]
    wrong = [one for one in told if not one.startswith((REFUSED, AGREED))]
    if undeclared and refused == told and told:
        return finding(
            "contract.guard", "pass", subject_name, f"{said}; {told[0]} too: a limit of the module's own",
            data=data, **at,
        )  # fmt: skip
    if refused and not undeclared and not wrong:
        return finding(
            "contract.declared-size", "fail", subject_name,
            f"{said}; inside the declared range {refused[0]}",
            hint=derived.advice(derived.isolated(item.condition, item.symbols), subject)
            or f"Declare sizes that the module can serve (min, max, multiple_of) under {subject.where}.dims.",
            data=data, **at,
        )  # fmt: skip
    if wrong or not told:
        return finding(
            "contract.guard", "fail" if wrong or not undeclared else "warn", subject_name,
            f"{said}; it is false at {size}" + (f", where {wrong[0]}" if wrong else ""),
            hint="Compute the size with tensors in that line, or declare only the sizes for which it holds.",
            data=data, **at,
        )  # fmt: skip
    return finding(
        "contract.guard", "warn", subject_name, f"{said}; it is false at {size}, yet {AGREED} there", data=data, **at
    )


def untried(graph: Graph) -> list[Finding]:
    """What is said of the restrictions where the file must not be run."""
    return [
        finding(
            "contract.guard",
            "skip",
            ", ".join(item.dims),
            f"{_said(item)}; what comes of it was not tried",
            **spot(item.place),
        )
        for item in graph.restrictions
    ]


def _said(item: Restriction) -> str:
    seen_at = f" ({item.place.shown})" if item.place else ""
    return f"the export assumes {item.text}{seen_at}, and the file does not check it"


def _nearest(item: Restriction) -> list[dict[str, int]]:
    """A few excluded sizes: the nearest to the example, which differ by a step, one between, and the farthest."""
    middle = len(item.excluded) // 2
    picked = [*item.excluded[:3], item.excluded[middle], *item.excluded[-2:]]
    return [sizes for at, sizes in enumerate(picked) if sizes not in picked[:at]]


def _probe(probe: Probe, sizes: dict[str, int], example: RunCase, user: Sequence[RunCase]) -> str:
    """What happens at these sizes, in a sentence; empty where it can't be tried."""
    ranges = {name: (size, size) for name, size in sizes.items()}
    made = cases.boundary_cases(probe.subject.declared, ranges, example, user)
    case = next((one for one in made if all(one.dims.get(name) == size for name, size in sizes.items())), None)
    if case is None:
        return ""
    return probe.tried(case, ", ".join(f"{name} = {size}" for name, size in sizes.items()))


def _differs(expected: Value, actual: Value, agrees: float) -> str:
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return next((said for one in zip(expected, actual, strict=True) if (said := _differs(*one, agrees))), "")
    if not isinstance(expected, np.ndarray) or not isinstance(actual, np.ndarray):
        return "" if expected is None and actual is None else "answers with another structure than PyTorch"
    if expected.shape != actual.shape:
        return f"answers with shape {list(actual.shape)}, and PyTorch with {list(expected.shape)}"
    if expected.dtype.kind in "biuO":
        same = bool((expected == actual).all())
        return "" if same else "answers otherwise than PyTorch"
    unlike = nonfinite_fault(expected, actual, None)  # which relL2 leaves out
    if unlike is not None:
        return f"has NaN or infinity at other places than PyTorch, {unlike.text}"
    error = relative_error(np.asarray(actual), np.asarray(expected))
    return "" if error <= agrees else f"is off by relL2 {error:.2g}"
