"""Runs two exports of one model on the same cases: where their numbers part, and whether the first is PyTorch's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnx_ci.artifact import tensors
from onnx_ci.artifact.tensors import Value
from onnx_ci.export.probe import File
from onnx_ci.numerics import parity
from onnx_ci.numerics.parity import CaseComparison
from onnx_ci.numerics.words import sci
from onnx_ci.records.cases import Case
from onnx_ci.records.model import ParitySpec
from onnx_ci.records.result import OutputFigures

_LONGEST = 160
_CODES = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")
Given = dict[str, Value] | str
"""The outputs of a run by name, or what the runtime said instead."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A case and the folder that holds its inputs and PyTorch's outputs."""

    case: Case
    folder: Path


@dataclass(frozen=True, slots=True)
class Parting:
    """A case in which two runs part, with the figures in words."""

    case: Case
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """What running both files showed.

    Attributes:
        compared: How many cases could be told.
        apart: Cases in which the two files give other numbers.
        wrong: Those of them in which the first file does not give PyTorch's outputs either.
        unsettled: Those of them in which it can't be told, since PyTorch's own outputs change from call to call.
        untold: Why a case could not be compared; "" when all were.
    """

    compared: int
    apart: list[Parting] = field(default_factory=list)
    wrong: list[Parting] = field(default_factory=list)
    untold: str = ""
    unsettled: list[Parting] = field(default_factory=list)


def compare(here: Path, there: Path, trials: Sequence[Trial], spec: ParitySpec) -> Comparison:
    """Runs the file in each folder on the CPU provider; one that stops in a case gives other numbers there.

    Raises:
        Exception: The first file can't be opened.
    """
    one = File(here)
    try:
        other: File | None = File(there)
        refused = ""
    except Exception as error:  # ONNX Runtime's errors have no common base
        other, refused = None, _brief(error)
    if other is None:
        return Comparison(0, untold=f"the second file can't be opened: {refused}")
    pairs = [(trial, _run(one, trial), _run(other, trial)) for trial in trials]
    told = [pair for pair in pairs if not (isinstance(pair[1], str) and isinstance(pair[2], str))]
    untold = next((str(mine) for _, mine, theirs in pairs if isinstance(mine, str) and isinstance(theirs, str)), "")
    apart = _judged([_beside(*pair) for pair in told], ParitySpec())
    if not apart:
        return Comparison(len(told), untold=untold)
    steady = [(trial, mine) for trial, mine, _ in told if not _varies(trial.case)]
    against = _judged([_beside_pytorch(trial, mine) for trial, mine in steady], spec)
    wrong = [parting for parting in against if any(parting.case is found.case for found in apart)]
    return Comparison(len(told), apart, wrong, untold, [parting for parting in apart if _varies(parting.case)])


def _run(file: File, trial: Trial) -> Given:
    feeds = tensors.read_values(trial.folder, "input")
    try:
        return file.run({name: feeds[name] for name in file.inputs})
    except Exception as error:
        return _brief(error)


def _beside(trial: Trial, mine: Given, theirs: Given) -> CaseComparison:
    """The first file against the second."""
    if isinstance(mine, str):
        return parity.not_run(trial.case, mine)
    if isinstance(theirs, str):
        return parity.not_run(trial.case, f"the second export stops: {theirs}")
    return parity.compare_case(trial.case, _told(trial, _named(mine, theirs)), _told(trial, mine), None, ParitySpec())


def _beside_pytorch(trial: Trial, mine: Given) -> CaseComparison:
    if isinstance(mine, str):
        return parity.not_run(trial.case, mine)
    expected = _named(mine, tensors.read_values(trial.folder, "output"))
    oracle = None if trial.case.unoracled else _named(mine, tensors.read_values(trial.folder, "oracle")) or None
    unit = parity.largest_magnitude(tensors.read_values(trial.folder, "input"))
    return parity.compare_case(trial.case, _told(trial, expected), _told(trial, mine), oracle, ParitySpec(), unit=unit)


def _named(mine: dict[str, Value], theirs: dict[str, Value]) -> dict[str, Value]:
    """By place under the first file's names: the exporter's own names of outputs differ with the graph."""
    return dict(zip(mine, theirs.values(), strict=True)) if len(mine) == len(theirs) else theirs


def _told(trial: Trial, values: dict[str, Value]) -> dict[str, Value]:
    """Without the outputs that PyTorch itself gives differently at each call."""
    return {name: value for name, value in values.items() if name not in trial.case.nondeterministic}


def _varies(case: Case) -> bool:
    """Whether PyTorch gives all of its outputs differently at each call."""
    return all(output.name in case.nondeterministic for output in case.outputs)


def _judged(comparisons: Sequence[CaseComparison], spec: ParitySpec) -> list[Parting]:
    """The cases that fail in any layer, judged together, since the budget is pooled over cases."""
    _, figures = parity.judge(comparisons, spec) if comparisons else ([], [])
    return [
        Parting(comparison.case, text)
        for comparison in comparisons
        if (text := next(_failures(comparison, figures), None)) is not None
    ]


def _failures(comparison: CaseComparison, figures: Sequence[OutputFigures]) -> Iterator[str]:
    if comparison.stopped:
        yield f"it stops: {comparison.stopped}"
    if comparison.names:
        yield comparison.names
    yield from (_words(row) for row in figures if row.case == comparison.case.name and row.status == "fail")


def _words(row: OutputFigures) -> str:
    if row.note.startswith("parity."):
        return f"{row.output}: {row.note.partition(': ')[2]}"
    if row.against == "exact" or row.e_runtime is None:
        return f"{row.output}: {row.beyond or 0.0:.1%} of its elements differ"
    return f"{row.output} is off by relL2 {sci(row.e_runtime)}"


def _brief(error: Exception) -> str:
    """What the runtime said, in one line and without its own codes."""
    return _CODES.sub("", " ".join(str(error).split()))[:_LONGEST] or type(error).__name__
