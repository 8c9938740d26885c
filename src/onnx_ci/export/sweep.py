"""Runs the original and the adapted module beside each other, and keeps the worst that was seen of each aspect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from onnx_ci.export import arguments, gradients, shared, trials
from onnx_ci.export.forward import Forward, Ran
from onnx_ci.export.gradients import Point, Verdict
from onnx_ci.export.side import Gradients, Side
from onnx_ci.export.subject import Subject
from onnx_ci.export.types import RunCase
from onnx_ci.records.result import Status

MOST_SECONDS = 5.0
"""For the inputs that are made here beside the cases."""
SHARE = 0.2
"""Of the model's time limit: for all but the user's cases."""
_GROWTH = 4
"""Gradients keep every inner value: they are taken where the inputs are at most so many times the example's."""
_RANK: tuple[Status, ...] = ("skip", "pass", "warn", "fail")


@dataclass(slots=True)
class Aspect:
    """What all inputs showed of one aspect: how many were judged, and the worst."""

    count: int = 0
    case: str = ""
    worst: Verdict = field(default_factory=lambda: Verdict("skip", "", None))

    def add(self, case: str, verdict: Verdict) -> None:
        """Keeps the worse one."""
        if verdict.status == "skip":
            self.skip(verdict.why)
            return
        self.count += 1
        if _badness(verdict) > _badness(self.worst):
            self.case, self.worst = case, verdict

    def skip(self, why: str) -> None:
        """Keeps the first reason, as long as nothing was judged."""
        if self.worst.status == "skip" and not self.worst.why:
            self.worst = Verdict("skip", "", None, why)


def _badness(verdict: Verdict) -> tuple[int, tuple[int, float]]:
    return _RANK.index(verdict.status), verdict.gap.rank if verdict.gap else (0, -1.0)


class Sweep:
    """The two modules, and what the inputs showed.

    Attributes:
        shared: The tensors of the two.
        ran: What each input gave, those of ours that a module refuses left out.
        values: Of the outputs; likewise `inputs` and `parameters` of the gradients.
        left_out: How many inputs were not tried, for want of time.
    """

    def __init__(self, subject: Subject, module: torch.nn.Module, clock: Callable[[], float]) -> None:
        self._subject, self._clock = subject, clock
        self._original, self._adapted = Side(module, subject.module), Side(subject.module)
        self.shared = shared.match(module, subject.module)
        self._stored = bool(self.shared.only_adapted or self.shared.only_original or self.shared.changed)
        self._forward = Forward(self._original, self._adapted, subject.spec.outputs, stored=self._stored)
        self._groups = self._tied()
        self._most = 0
        self.values, self.inputs, self.parameters = Aspect(), Aspect(), Aspect()
        self.ran: list[Ran] = []
        self.left_out = 0
        if not self._groups:
            why = self._original.no_oracle or self._adapted.no_oracle
            self.parameters.skip(why or "the two modules share no parameter of equal value")

    @property
    def compared(self) -> list[Ran]:
        """The inputs that both modules took."""
        return [ran for ran in self.ran if ran.compared]

    @property
    def unmatched(self) -> str:
        """Outputs that only one of the two gives, in words."""
        return self._forward.unmatched(self.compared[0])

    def run(self, example: RunCase, user: Sequence[RunCase]) -> None:
        """Tries every input, as far as the time goes: the user's own always."""
        share = SHARE * self._subject.spec.time_limit
        end = self._clock() + share
        self._most = _GROWTH * max(_elements(example), 1)
        tried = []
        for case in trials.known(self._subject.declared, example, user):
            late = self._clock() >= end
            if late and case.origin == "boundary":
                self.left_out += 1
                continue
            ran = self._try(case, gradients_too=not late)
            tried += [case] if ran.compared else []
        end = min(end, self._clock() + min(MOST_SECONDS, share))
        sizes = {tuple(sorted(case.dims.items())): case for case in reversed(tried)}
        for case in reversed(sizes.values()):
            for extra in trials.extra(self._subject.declared, case, user):
                if self._clock() >= end:
                    self.left_out += 1
                else:
                    self._try(extra, gradients_too=True, ours=True)

    def _try(self, case: RunCase, *, gradients_too: bool, ours: bool = False) -> Ran:
        ran = self._forward.run(case)
        if ours and not ran.compared:
            return ran  # values of ours that a module refuses say nothing of a size
        self.ran.append(ran)
        for verdict in ran.verdicts:
            self.values.add(case.name, verdict)
        if ran.compared and gradients_too and _elements(case) <= self._most:
            self._differentiate(case, ran)
        return ran

    def _differentiate(self, case: RunCase, ran: Ran) -> None:
        if ran.coarse:
            self._no_gradients(f"gradients are compared in float64 only: {ran.coarse}")
            return
        drawn = gradients.weights(ran.original, ran.adapted, ran.pairs, seed=len(self.ran))
        pairs = [(pair, weight) for pair, weight in zip(ran.pairs, drawn, strict=True) if weight is not None]
        mine, theirs = {at: w for (at, _), w in pairs}, {at: w for (_, at), w in pairs}
        first, second = self._original.gradients(case.inputs, mine), self._adapted.gradients(case.inputs, theirs)
        cut = {at for at, (pair, _) in enumerate(pairs) if pair[0] in first.cut or pair[1] in second.cut}
        if reason := _impossible(first, second, len(pairs)):
            self._no_gradients(reason)
            return
        if cut:
            kept = [pair for at, pair in enumerate(pairs) if at not in cut]
            mine, theirs = {at: w for (at, _), w in kept}, {at: w for (_, at), w in kept}
            first, second = self._original.gradients(case.inputs, mine), self._adapted.gradients(case.inputs, theirs)
        if not mine or first.error or second.error:
            self._no_gradients(first.error or second.error or "no output is differentiable in both modules")
            return
        point = Point(case.inputs, ran.original, mine)
        if first.inputs:
            self.inputs.add(case.name, gradients.of_inputs(self._original, point, first, second, stored=self._stored))
        else:
            self.inputs.skip("no input is a floating-point tensor")
        if self._groups:
            sides = self._original, self._adapted
            told = gradients.of_parameters(*sides, point, first, second, self._groups, stored=self._stored)
            self.parameters.add(case.name, told)

    def _tied(self) -> list[list[shared.Pair]]:
        """The shared parameters, those together that are tied in either module; none without copies in float64."""
        one, other = self._original.oracle, self._adapted.oracle
        return shared.groups(self.shared.parameters, one.module, other.module) if one and other else []

    def _no_gradients(self, reason: str) -> None:
        self.inputs.skip(reason)
        self.parameters.skip(reason)


def _impossible(first: Gradients, second: Gradients, asked: int) -> str:
    if not asked:
        return "no output is a floating-point tensor in both modules"
    for which, found in (("the original", first), ("the adapted module", second)):
        if found.error:
            return f"{which} raised while gradients were on: {found.error}"
        if len(found.cut) == asked:
            return f"no output of {which} carries a gradient: forward runs under no_grad, or leaves PyTorch"
    return ""


def _elements(case: RunCase) -> int:
    leaves = arguments.paths(case.inputs).values()
    return sum(leaf.numel() for leaf in leaves if isinstance(leaf, torch.Tensor))
