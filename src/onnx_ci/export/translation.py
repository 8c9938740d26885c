"""Whether the graph that the exporter translated is the module's function, before its optimizer touched it.

With `parity.function`, which judges the file, a fault is laid at the translation or at the optimizer. What rounding of
the exporter's constants can do in this graph is measured here, since a chain that was folded is gone from the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from onnx_ci.artifact import layout, tensors
from onnx_ci.artifact.tensors import Value
from onnx_ci.divergence.tell import Rung
from onnx_ci.export import made
from onnx_ci.export.diverge import Rounded
from onnx_ci.numerics import function
from onnx_ci.numerics.deviation import Deviation, deviations
from onnx_ci.numerics.parity import largest_magnitude
from onnx_ci.records.cases import Case
from onnx_ci.records.result import Finding, finding
from onnx_ci.twin import Twin, TwinRun, Unoracled, draws, jumps, measured

_RULE = "parity.translation"
_WORDS = function.Words(
    rule=_RULE,
    graph="the graph that the exporter translated, before any optimization,",
    hint="See parity.divergence: where capture is at fault, mend what it names; where the translation is, write that "
    "operator in other operators, and report it to the exporter.",
)


@dataclass(frozen=True, slots=True)
class Wrong:
    """One case in which outputs in float64 are not the module's.

    Attributes:
        outputs: By name.
        rung: The first graph that is wrong: as it was translated, or as the optimizer left it.
        file: The twin of the file that ships.
        before: The twin of the unoptimized graph, whose values have the same names.
    """

    case: Case
    outputs: list[str]
    rung: Rung
    file: Rounded
    before: Rounded


@dataclass(frozen=True, slots=True)
class Translation:
    """What running both graphs in float64 gave.

    Attributes:
        cases: With the figures of the unoptimized graph.
        made: Constants of the file that the exporter made; None where nobody looked.
        wrong: Outputs that either graph gets wrong, each in the first case that shows it.
    """

    findings: list[Finding]
    cases: list[Case]
    made: list[str] | None
    wrong: list[Wrong] = field(default_factory=list)


@dataclass(slots=True)
class _Judge:
    """Both graphs as twins, with the constants in each that the exporter made, and what was found case by case."""

    shipped: Rounded
    unoptimized: Rounded
    folder: Path
    verdicts: list[function.Verdict] = field(default_factory=list)
    by_reference: set[str] = field(default_factory=set)
    wrong: list[Wrong] = field(default_factory=list)

    def judge(self, case: Case) -> Case:
        """Judges one case, and gives it back with its figures.

        Raises:
            Unoracled: An operator of the unoptimized graph has no float64 form.
        """
        kinds: tuple[tensors.Kind, ...] = ("input", "oracle", "output")
        feeds, oracle, expected = (tensors.read_values(self.folder / f"test_data_set_{case.index}", k) for k in kinds)
        unit = largest_magnitude(feeds)

        def beside_oracle(run: TwinRun) -> list[Deviation]:
            return deviations(case, run.outputs, oracle, expected, unit)

        run, shipped = self.unoptimized.twin.run(feeds), _tried(self.shipped.twin, feeds)
        self.by_reference.update(run.by_reference)
        found, after = beside_oracle(run), beside_oracle(shipped) if shipped is not None else []
        rounding: dict[str, float] = {}

        def noted(sizes: Iterable[Mapping[str, float]]) -> Iterator[Mapping[str, float]]:
            for one in sizes:
                rounding.update({name: max(size, rounding.get(name, 0.0)) for name, size in one.items()})
                yield one

        given = self.unoptimized.twin, feeds, self.unoptimized.made
        _settled([*found, *after], run, {}, noted(draws(*given)))  # what it takes for the file is asked of this one
        judged = _settled(found, run, {**rounding}, noted(jumps(*given, rounding)))
        self.verdicts += judged
        self._note(case, "translation", judged)
        if shipped is not None:
            measures = measured(self.shipped.twin, feeds, self.shipped.made)
            self._note(case, "optimizer", _settled(after, shipped, rounding, measures))
        before, now = _errors(found), _errors(after)
        return replace(
            case,
            outputs=[
                replace(
                    item,
                    e_unoptimized=before[item.name],
                    e_exported=now.get(item.name),
                    rounding=rounding.get(item.name),
                )
                if item.name in before
                else item
                for item in case.outputs
            ],
        )

    def _note(self, case: Case, rung: Rung, judged: Sequence[function.Verdict]) -> None:
        known = {name for one in self.wrong for name in one.outputs}
        bad = [one for one in judged if one.status == "fail" and one.deviation.base not in known]
        if bad:
            outputs = list(dict.fromkeys(one.deviation.base for one in bad))
            self.wrong.append(Wrong(case, outputs, rung, self.shipped, self.unoptimized))


def judge(cases: Sequence[Case], module: torch.nn.Module, folder: Path, unoptimized: Path | None) -> Translation:
    """Judges the unoptimized graph on the smallest cases.

    Args:
        cases: Of the artifact.
        module: As it was exported.
        folder: The artifact, with the file that ships and the tensors of the cases.
        unoptimized: The folder of the unoptimized graph; None where there is none.
    """
    own, shipped = made.Own.of(module), Twin.open(folder / layout.MODEL)

    def skipped(why: str, names: list[str]) -> Translation:
        return Translation([finding(_RULE, "skip", "", f"not judged, since {why}")], list(cases), names)

    if unoptimized is None:
        why = "this exporter gives no graph before its optimization"
        return skipped(why, made.names(shipped.float_constants(), own))
    twin = Twin.open(unoptimized / layout.MODEL)
    before = made.names(twin.float_constants(), own)
    names = made.after(shipped, twin, before, module)
    chosen = function.chosen(cases)
    if not chosen:
        why = next((case.unoracled for case in cases if case.unoracled), "there is no case to run")
        return skipped(f"no case has outputs in float64: {why}", names)
    judge = _Judge(Rounded(shipped, names), Rounded(twin, before), folder)
    told: dict[int, Case] = {}
    ended: list[Finding] = []
    try:
        for case in function.affordable(chosen):
            told[case.index] = judge.judge(case)
    except Unoracled as error:
        if not judge.verdicts:
            return skipped(str(error), names)
        ended = [finding(_RULE, "skip", "", f"further cases were not judged, since {error}")]
    found = function.findings(judge.verdicts, _WORDS, sorted(judge.by_reference)) + ended
    return Translation(found, [told.get(case.index, case) for case in cases], names, judge.wrong)


def _settled(
    found: Sequence[Deviation],
    run: TwinRun,
    before: Mapping[str, float | None],
    measures: Iterable[Mapping[str, float]],
) -> list[function.Verdict]:
    return function.settled(found, before, measures, whole=lambda _: True, exact=not run.by_reference)


def _errors(found: Sequence[Deviation]) -> dict[str, float]:
    """By output, that of its worst item."""
    errors: dict[str, float] = {}
    for one in found:
        errors[one.base] = max(one.error, errors.get(one.base, 0.0))
    return errors


def _tried(twin: Twin, feeds: Mapping[str, Value]) -> TwinRun | None:
    """A run, or None where an operator has no float64 form."""
    try:
        return twin.run(feeds)
    except Unoracled:
        return None
