"""Whether the graph that the exporter translated is the module's function, before its optimizer touched it.

With `parity.function`, which judges the file, a fault is laid at the translation or at the optimizer. What rounding of
the exporter's constants can do in this graph is measured here, since a chain that was folded is gone from the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from onnx_ci.artifact import layout, tensors
from onnx_ci.artifact.tensors import Value
from onnx_ci.export import made
from onnx_ci.numerics import function
from onnx_ci.numerics.deviation import Deviation, deviations
from onnx_ci.numerics.parity import largest_magnitude
from onnx_ci.records.cases import Case
from onnx_ci.records.result import Finding, finding
from onnx_ci.twin import Twin, TwinRun, Unoracled, amplification

_RULE = "parity.translation"
_WORDS = function.Words(
    rule=_RULE,
    graph="the graph that the exporter translated, before any optimization,",
    hint="Find the operator by its source line, write it in other operators, and report it to the exporter.",
)


@dataclass(frozen=True, slots=True)
class Translation:
    """What running both graphs in float64 gave.

    Attributes:
        cases: With the figures of the unoptimized graph.
        made: Constants of the file that the exporter made.
    """

    findings: list[Finding]
    cases: list[Case]
    made: list[str]


@dataclass(slots=True)
class _Judge:
    """Both graphs as twins, and what was found case by case."""

    shipped: Twin
    unoptimized: Twin
    made: list[str]
    folder: Path
    verdicts: list[function.Verdict] = field(default_factory=list)
    by_reference: set[str] = field(default_factory=set)

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

        run = self.unoptimized.run(feeds)
        self.by_reference.update(run.by_reference)
        found, other = beside_oracle(run), None
        if not any(one.doubtful for one in found):
            other = _tried(self.shipped, feeds)
        sure = other is not None and not any(one.doubtful for one in [*found, *beside_oracle(other)])
        rounding = {} if sure else amplification(self.unoptimized, feeds, self.made)
        exact = not run.by_reference
        self.verdicts += [function.judged(one, rounding.get(one.base), whole=True, exact=exact) for one in found]
        errors = {one.base: one for one in found}
        return replace(
            case,
            outputs=[
                replace(item, e_unoptimized=errors[item.name].error, rounding=rounding.get(item.name))
                if item.name in errors
                else item
                for item in case.outputs
            ],
        )


def judge(cases: Sequence[Case], module: torch.nn.Module, folder: Path, unoptimized: Path | None) -> Translation:
    """Judges the unoptimized graph on the smallest cases.

    Args:
        cases: Of the artifact.
        module: As it was exported.
        folder: The artifact, with the file that ships and the tensors of the cases.
        unoptimized: The folder of the unoptimized graph; None where there is none.
    """
    own, shipped = made.Own(module), Twin.open(folder / layout.MODEL)
    names = made.names(shipped.float_constants(), own)

    def skipped(why: str) -> Translation:
        return Translation([finding(_RULE, "skip", "", f"not judged, since {why}")], list(cases), names)

    if unoptimized is None:
        return skipped("this exporter gives no graph before its optimization")
    chosen = function.chosen(cases)
    if not chosen:
        why = next((case.unoracled for case in cases if case.unoracled), "there is no case to run")
        return skipped(f"no case has outputs in float64: {why}")
    twin = Twin.open(unoptimized / layout.MODEL)
    judge = _Judge(shipped, twin, made.names(twin.float_constants(), own), folder)
    try:
        told = {case.index: judge.judge(case) for case in function.affordable(chosen)}
    except Unoracled as error:
        return skipped(str(error))
    found = function.findings(judge.verdicts, _WORDS, sorted(judge.by_reference))
    return Translation(found, [told.get(case.index, case) for case in cases], names)


def _tried(twin: Twin, feeds: Mapping[str, Value]) -> TwinRun | None:
    """A run, or None where an operator has no float64 form."""
    try:
        return twin.run(feeds)
    except Unoracled:
        return None
