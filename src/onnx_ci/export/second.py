"""A second export of the same model at another example: an export that depends on its example baked something in.

See docs/decisions/second-export.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnx_ci.artifact.layout import Artifact
from onnx_ci.artifact.machine import peak_bytes
from onnx_ci.export import (
    another,
    arguments,
    cases,
    derived,
    drawn,
    evaluate,
    graph,
    rerun,
    retry,
    save,
    seeded,
    sizes,
    state,
    wallclock,
)
from onnx_ci.export.another import Room
from onnx_ci.export.clock import Stages
from onnx_ci.export.difference import Difference, first_difference
from onnx_ci.export.loading import Loaded, load
from onnx_ci.export.rerun import Comparison, Trial
from onnx_ci.export.subject import Graph
from onnx_ci.export.types import Outputs, RunCase
from onnx_ci.numerics.words import case_text, counted
from onnx_ci.records.messages import Reexported, ReexportRequest
from onnx_ci.records.result import Finding, StageCost, Status, finding
from onnx_ci.records.source_map import Origin, SourceMap

RULE = "contract.second-export"
_MOST_EXAMPLES = 2
_MOST_REFUSED = 8
_SEED = 7
"""Other than the first export's, so that a constant which is drawn shows."""


def reexport(request: ReexportRequest, progress: Callable[[str], None]) -> Reexported:
    """Exports a model again at another example and compares the two graphs, and their numbers where they differ.

    Raises:
        OnnxCiError: Nothing could be told: the user's code raised this time, or the artifact can't be read.
    """
    stages = Stages(progress)
    artifact = Artifact(Path(request.artifact))
    found = _judge(request, artifact, stages)
    seconds = sum(cost.seconds for cost in stages.costs.values())
    return Reexported(findings=found, cost=StageCost(seconds=round(seconds, 4), peak_bytes=peak_bytes()))


def _judge(request: ReexportRequest, artifact: Artifact, stages: Stages) -> list[Finding]:
    with stages("second export"):
        given = load(request.job.model, Path(request.root))
    found = derived.promised(artifact.contract(), given.declared)
    if found:  # as the first export found it; the sizes of its cases say the same
        declared = derived.substituted(given.declared, found)
        example, *user = (derived.remeasured(case, declared) for case in (given.example, *given.user))
        given = replace(given, declared=declared, example=example, user=user)
    first = next((case.dims for case in artifact.cases().cases if case.origin == "example"), given.example.dims)
    if first != given.example.dims:  # the first export kept another example than it began with
        given = replace(given, example=retry.moved(given.example, first, given.declared, given.user))
    if request.weights and given.weights != request.weights:
        return drawn.weights(RULE)
    sent = [case.dims for case in given.user if not case.problems]
    rooms = another.rooms(artifact.contract(), given.example.dims, sent)
    with tempfile.TemporaryDirectory(prefix=".second.", dir=artifact.folder.parent) as folder:
        return _Second(artifact, given, rooms, Path(folder), stages, request.program).judge()


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An export at another example: what came of it, compared with the artifact.

    Attributes:
        stopped: Why there is no second graph; "" where there is one.
        difference: Where the graphs part; None where they are the same.
        captured: Whether the captured programs were the same already, and no second graph was made of it.
    """

    case: RunCase
    stopped: str = ""
    difference: Difference | None = None
    origins: SourceMap | None = None
    numbers: Comparison | None = None
    drawn: str = ""
    captured: bool = False

    @property
    def same(self) -> bool:
        return not self.stopped and self.difference is None


class _Second:
    """The attempts, one after the other, and the verdict on them."""

    def __init__(
        self, artifact: Artifact, given: Loaded, rooms: dict[str, Room], folder: Path, stages: Stages, program: str
    ) -> None:
        self._artifact, self._given, self._rooms = artifact, given, rooms
        self._folder, self._stages, self._program = folder, stages, program
        self._example = given.example.dims
        self._taken = {axis for item in given.declared.inputs for axis in item.axes if isinstance(axis, int)}
        self._drew = False
        state.seed(_SEED)

    def judge(self) -> list[Finding]:
        """The verdict. A difference that proves nothing wrong is tried at a third example: it may be that one's."""
        attempts: list[_Attempt] = []
        for case, eager in self._examples():
            attempts.append(self._attempt(case, eager))
            last = attempts[-1]
            if last.same:
                return [_passed(last, len(attempts))]
            if last.drawn:
                return self._drawn(last)
            if last.difference is not None and self._timed(case):
                said = "forward's answer changes with the clock, and each export holds its own time: see export.random"
                return [finding(RULE, "skip", "", said)]
            if last.numbers is not None and last.numbers.wrong:
                return [self._failed(last)]
            if len(attempts) == _MOST_EXAMPLES:
                break
        if not attempts:
            said = "no other example was found: the module refuses the sizes tried, or the dims have only one"
            return [finding(RULE, "skip", "", said)]
        return [self._warned(next((one for one in attempts if not one.stopped), attempts[0]))]

    def _examples(self) -> Iterator[tuple[RunCase, Outputs]]:
        """Cases of other sizes that the module takes, and what it gives for them."""
        before: list[dict[str, int]] = []
        refused = 0
        while refused < _MOST_REFUSED:
            for case in self._candidates(before):
                eager = self._call(case)
                if not eager.error:
                    before.append(case.dims)
                    yield case, eager
                    break
                refused += 1
            else:
                return

    def _candidates(self, before: list[dict[str, int]]) -> Iterator[RunCase]:
        """The user's own cases first, where one moves every dim: their values are the real ones."""
        usable = [case for case in self._given.user if not case.problems and case.dims not in before]
        for case in usable:
            if another.fits(case.dims, self._rooms, self._example, self._taken):
                yield case
        for dims in another.variations(self._rooms, self._example, self._taken, before):
            at = ", ".join(f"{name} = {size}" for name, size in dims.items())
            plan = sizes.Plan("second-example", f"the second export ran on it: {at}", dims)
            yield cases.make(plan, self._given.declared, self._given.example, self._given.user)
        for case in usable:
            if any(case.dims.get(name) != self._example.get(name) for name in self._rooms):
                yield case

    def _call(self, case: RunCase) -> Outputs:
        module = self._given.loaded.module
        with state.preserved(module):
            start = state.RandomState.now()
            given = arguments.copied(arguments.call(module, self._given.call(case)))
            self._drew = self._drew or start.moved()
        return given

    def _timed(self, case: RunCase) -> bool:
        """Whether the module's answer changes with the clock, which then stands in each file as a constant."""
        module, call = self._given.loaded.module, self._given.call(case)
        with state.preserved(module), wallclock.watched(module) as reads:
            now = seeded.run(module, call)
        return bool(reads and wallclock.effect(module, call, now))

    def _attempt(self, case: RunCase, eager: Outputs) -> _Attempt:
        subject = self._given.subject(case, eager)
        try:
            built = graph.build(subject, lambda _: self._stages("second export"), self._program)
        except graph.SameProgram:
            return _Attempt(case, captured=True)
        if not isinstance(built, Graph):
            return _Attempt(case, stopped=built[0].message)
        with self._stages("second export"):
            difference = first_difference(ir.load(self._artifact.model), built.model)
            if difference is None:
                return _Attempt(case)
        by_seed = self._by_seed() if self._drew and difference.kind == "constant" else ""
        if by_seed:
            return _Attempt(case, difference=difference, origins=built.source_map, drawn=by_seed)
        with self._stages("second export"):
            numbers = self._numbers(built, subject, case)
        return _Attempt(case, difference=difference, origins=built.source_map, numbers=numbers)

    def _by_seed(self) -> str:
        """What the outputs differ by when the very first example is exported again, with another seed; "" if nothing.

        Such a constant was drawn: a module, or a cache beside it, may keep what the first call drew.
        """
        example = self._given.example
        subject = self._given.subject(example, self._call(example))
        built = graph.build(subject, lambda _: self._stages("second export"))
        if not isinstance(built, Graph):
            return ""
        with self._stages("second export"):
            if first_difference(ir.load(self._artifact.model), built.model) is None:
                return ""
            apart = self._numbers(built, subject, example).apart
        return apart[0].text if apart else ""

    def _numbers(self, built: Graph, subject: Any, case: RunCase) -> Comparison:
        """Both files on all cases of the artifact, and on the second example with PyTorch's own outputs."""
        folder = self._folder / f"{len(list(self._folder.iterdir()))}"
        folder.mkdir()
        seen = evaluate.evaluate(subject, built, [case], folder)
        save.save(built.model, folder, single_file=None)
        save.release(built.model)
        trials = [Trial(one, self._artifact.case_folder(one.index)) for one in self._artifact.cases().cases]
        trials += [Trial(one, folder / f"test_data_set_{one.index}") for one in seen.cases]
        trials = [trial for trial in trials if not (trial.case.refused or trial.case.is_special)]
        try:
            return rerun.compare(self._artifact.folder, folder, trials, self._given.spec.parity)
        except Exception as error:  # ONNX Runtime's errors have no common base
            return Comparison(0, untold=f"the file can't be run: {str(error).splitlines()[0][:160]}")

    def _failed(self, attempt: _Attempt) -> Finding:
        numbers = attempt.numbers
        assert numbers is not None  # asked for before
        first = numbers.wrong[0]
        message = (
            f"{self._parted(attempt)}. In {len(numbers.wrong)} of {counted(numbers.compared, 'case')} the two files "
            f"give other numbers, and the one that ships is not PyTorch's: "
            f"{case_text(first.case.name, first.case.dims)}, {first.text}"
        )
        hint = (
            "A size of the export example was baked into the graph at that line: compute it with tensors, declare "
            "the dim as a number, or export a variant for each size."
        )
        return self._finding("fail", attempt, message, hint)

    def _warned(self, attempt: _Attempt) -> Finding:
        if attempt.stopped:
            message = f"the export at {_at(attempt.case)} stops, though the module runs: {attempt.stopped}"
            return self._finding("warn", attempt, message, "The file may hold for the sizes about its example only.")
        numbers = attempt.numbers or Comparison(0, untold="the files were not run")
        said = f"both give the same numbers in {counted(numbers.compared, 'case')}"
        hint = "Nothing is known to be wrong. Look at that line if its size or value is meant to vary with the inputs."
        if numbers.unsettled:
            other = numbers.unsettled[0]
            said = (
                f"the two files give other numbers in {counted(len(numbers.apart), 'case')}, and which is right can't "
                f"be told, since PyTorch's own outputs change from call to call: "
                f"{case_text(other.case.name, other.case.dims)}, {other.text}"
            )
            hint = "Look at that line for a clock, a counter or a random number, and take it as an input."
        elif numbers.apart:
            other = numbers.apart[0]
            said = (
                f"the file that ships gives PyTorch's outputs in {counted(numbers.compared, 'case')}, the other does "
                f"not in {case_text(other.case.name, other.case.dims)}: {other.text}"
            )
        if numbers.untold:
            said += f"; not all could be told: {numbers.untold}"
        return self._finding("warn", attempt, f"{self._parted(attempt)}; {said}", hint)

    def _drawn(self, attempt: _Attempt) -> list[Finding]:
        assert attempt.difference is not None  # asked for before
        return drawn.constants(RULE, attempt.difference.text, attempt.drawn, self._origin(attempt))

    def _parted(self, attempt: _Attempt) -> str:
        found = attempt.difference
        assert found is not None  # asked for before
        origin = self._origin(attempt)
        place = f" ({origin.file}:{origin.line})" if origin and origin.file else ""
        inside = f" in {origin.module}" if origin and origin.module else ""
        count = f" ({found.here_nodes} nodes, and {found.there_nodes} there)"
        return f"an export at {_at(attempt.case)} gives another graph{count}: first, {found.text}{inside}{place}"

    def _origin(self, attempt: _Attempt) -> Origin | None:
        """Where the first differing node comes from: the shipped graph's, else the other's."""
        found = attempt.difference
        known = self._artifact.source_map().values
        other = attempt.origins.values if attempt.origins else {}
        both = [known.get(found.here or ""), other.get(found.there or "")] if found else []
        return next((one for one in both if one and one.file), next((one for one in both if one), None))

    def _finding(self, status: Status, attempt: _Attempt, message: str, hint: str) -> Finding:
        origin = self._origin(attempt) if attempt.difference else None
        numbers = attempt.numbers
        moved = [name for name in self._rooms if attempt.case.dims.get(name) != self._example.get(name)]
        data: dict[str, Any] = {"example": self._example, "second": attempt.case.dims}
        if attempt.difference:
            data["difference"] = attempt.difference.text
        if numbers:
            data["apart"] = [one.case.name for one in numbers.apart]
            data["wrong"] = [one.case.name for one in numbers.wrong]
        return finding(
            RULE, status, ", ".join(moved), message, hint=hint, data=data,
            file=origin.file if origin else None, line=origin.line if origin and origin.file else None,
        )  # fmt: skip


def _passed(attempt: _Attempt, tried: int) -> Finding:
    same = "program" if attempt.captured else "graph"
    data = {"second": attempt.case.dims, "tried": tried, "same": same}
    return finding(RULE, "pass", "", f"an export at {_at(attempt.case)} gives the same {same}", data=data)


def _at(case: RunCase) -> str:
    return ", ".join(f"{name} = {size}" for name, size in case.dims.items())
