"""A second export of the same model at another example: an export that depends on its example baked something in.

See docs/decisions/second-export.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
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
from onnx_ci.export.difference import first_difference
from onnx_ci.export.loading import Loaded, load
from onnx_ci.export.parted import RULE, Attempt, Told
from onnx_ci.export.rerun import Comparison, Trial
from onnx_ci.export.subject import Graph
from onnx_ci.export.types import Outputs, RunCase
from onnx_ci.records.messages import Reexported, ReexportRequest
from onnx_ci.records.result import Finding, StageCost, finding

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


class _Second:
    """The attempts, one after the other, and the verdict on them."""

    def __init__(
        self, artifact: Artifact, given: Loaded, rooms: dict[str, Room], folder: Path, stages: Stages, program: str
    ) -> None:
        self._artifact, self._given, self._rooms = artifact, given, rooms
        self._folder, self._stages, self._program = folder, stages, program
        self._example = given.example.dims
        self._told = Told(artifact, self._example, list(rooms))
        self._taken = {axis for item in given.declared.inputs for axis in item.axes if isinstance(axis, int)}
        self._drew = False
        state.seed(_SEED)

    def judge(self) -> list[Finding]:
        """The verdict. A difference that proves nothing wrong is tried at a third example: it may be that one's."""
        attempts: list[Attempt] = []
        for case, eager in self._examples():
            attempts.append(self._attempt(case, eager))
            last = attempts[-1]
            if last.same:
                return [self._told.passed(last, len(attempts))]
            if last.drawn:
                return self._told.drawn(last)
            if last.difference is not None and self._timed(case):
                said = "forward's answer changes with the clock, and each export holds its own time: see export.random"
                return [finding(RULE, "skip", "", said)]
            if last.numbers is not None and last.numbers.wrong:
                return [self._told.failed(last)]
            if len(attempts) == _MOST_EXAMPLES:
                break
        if not attempts:
            said = "no other example was found: the module refuses the sizes tried, or the dims have only one"
            return [finding(RULE, "skip", "", said)]
        return [self._told.warned(next((one for one in attempts if not one.stopped), attempts[0]))]

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

    def _attempt(self, case: RunCase, eager: Outputs) -> Attempt:
        subject = self._given.subject(case, eager)
        try:
            built = graph.build(subject, lambda _: self._stages("second export"), self._program)
        except graph.SameProgram:
            return Attempt(case, captured=True)
        if not isinstance(built, Graph):
            return Attempt(case, stopped=built[0].message)
        with self._stages("second export"):
            difference = first_difference(ir.load(self._artifact.model), built.model)
            if difference is None:
                return Attempt(case)
        by_seed = self._by_seed() if self._drew and difference.kind == "constant" else ""
        if by_seed:
            return Attempt(case, difference=difference, origins=built.source_map, drawn=by_seed)
        with self._stages("second export"):
            numbers = self._numbers(built, subject, case)
        return Attempt(case, difference=difference, origins=built.source_map, numbers=numbers)

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
