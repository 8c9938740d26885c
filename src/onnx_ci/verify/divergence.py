"""The provider's rung: where a target first goes wrong beside the CPU provider, which computes the file as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx

from onnx_ci.artifact import tensors
from onnx_ci.artifact.layout import Artifact
from onnx_ci.artifact.tensors import Value
from onnx_ci.divergence import repro, tell
from onnx_ci.divergence.dataflow import Dataflow
from onnx_ci.divergence.locate import Located, Sweep, locate
from onnx_ci.divergence.session import Open, inner_values
from onnx_ci.divergence.tell import Diagnosis
from onnx_ci.numerics import parity
from onnx_ci.numerics.comparison import CaseComparison
from onnx_ci.records.cases import Case
from onnx_ci.records.model import ParitySpec
from onnx_ci.records.result import Finding, OutputFigures, Status, output_of
from onnx_ci.records.source_map import SourceMap
from onnx_ci.twin import Twin, Unoracled

_AT_ONCE = 64
"""Values whose sizes are looked at in one run."""


@dataclass(frozen=True, slots=True)
class Providers:
    """The two that are held beside each other, each as an opener of models whose data lies in the artifact.

    Attributes:
        name: Of the target's provider.
    """

    name: str
    target: Open
    cpu: Open


@dataclass(slots=True)
class _OnCpu:
    """The CPU provider's values as a reference, and the twin's as those in float64."""

    model: onnx.ModelProto
    folder: Path
    providers: Providers
    feeds: Mapping[str, Value]
    order: Sequence[str]
    _sizes: dict[str, int] = field(default_factory=dict)

    def sizes(self) -> Mapping[str, int]:
        for at in range(0, 0 if self._sizes else len(self.order), _AT_ONCE):
            made = self.expected(self.order[at : at + _AT_ONCE])
            self._sizes |= {name: value.nbytes for name, value in made.items() if isinstance(value, np.ndarray)}
        return self._sizes

    def expected(self, names: Sequence[str]) -> Mapping[str, Value]:
        return inner_values(self.model, self.providers.cpu, self.feeds, names)

    def exact(self, names: Sequence[str]) -> Mapping[str, Value]:
        return _in_float64(self.model, self.folder, self.feeds, names)

    def exact_from(self, name: str, given: Mapping[str, Value], part: onnx.ModelProto) -> Value:
        return _in_float64(part, None, given, [name]).get(name)


def _in_float64(
    model: onnx.ModelProto, folder: Path | None, feeds: Mapping[str, Value], names: Sequence[str]
) -> Mapping[str, Value]:
    """These values of the twin; empty where it has no path, and the fixed tolerances judge."""
    given = {name: value for name, value in feeds.items() if not isinstance(value, dict)}
    try:
        ran = Twin(model, folder).run(given, keep=names)
    except Unoracled:
        return {}
    return {name: value for name, value in (ran.outputs | ran.kept).items() if name in names}


def judge(
    artifact: Artifact,
    comparisons: Sequence[CaseComparison],
    figures: Sequence[OutputFigures],
    spec: ParitySpec,
    providers: Providers,
    origins: SourceMap,
    repros: Path | None,
) -> list[Finding]:
    """Says where the target goes wrong in the smallest case that fails; nothing where the CPU fails there too.

    Args:
        artifact: What is judged.
        comparisons: Of the target, by case.
        figures: What they were judged to be.
        spec: For the budget.
        providers: The target's and the CPU's.
        origins: Where the file's values come from.
        repros: Where the folder that shows it is written; None for nowhere.
    """
    model = onnx.load(str(artifact.model), load_external_data=False)
    names = {item.name for item in model.graph.output}
    failing: dict[str, list[str]] = {}
    for row in figures:
        if row.status == "fail":
            failing.setdefault(row.case, []).append(output_of(row.output, names))
    cases = [one.case for one in comparisons if one.case.name in failing]
    if not cases:
        return []
    feeds = {case.index: tensors.read_values(artifact.case_folder(case.index), "input") for case in cases}
    case = min(cases, key=lambda one: sum(getattr(value, "size", 0) for value in feeds[one.index].values()))
    outputs = list(dict.fromkeys(name for name in failing[case.name] if name in names))
    try:
        if not outputs or _fails_on_cpu(artifact, comparisons, case, feeds[case.index], spec, providers, outputs):
            return []
        located = _locate(artifact, model, feeds[case.index], spec, providers, outputs)
    except Exception:  # ONNX Runtime's errors have no common base: parity has said what fails, this explains no more
        return []
    flow = Dataflow(model)
    diagnosis = Diagnosis(outputs=outputs, case=case.name, rung="provider", located=located)
    status: Status = "fail" if located is None or located.is_cause else "pass"
    found = tell.told(diagnosis, flow, origins, status)
    if repros is None or located is None or located.alone is None or not located.is_cause:
        return [found]
    folder = repros / repro.plain(outputs[0])
    if repro.write(folder, located.alone.part, title=found.message, provider=providers.name):
        return [found]
    return [tell.told(replace(diagnosis, repro=f"{repro.FOLDER}/{repros.name}/{folder.name}"), flow, origins, status)]


def _fails_on_cpu(
    artifact: Artifact,
    comparisons: Sequence[CaseComparison],
    case: Case,
    feeds: Mapping[str, Value],
    spec: ParitySpec,
    providers: Providers,
    outputs: Sequence[str],
) -> bool:
    """Whether these outputs fail there too in this case, all else as it was: budgets are pooled over cases."""
    folder = artifact.case_folder(case.index)
    actual = providers.cpu(artifact.model.read_bytes()).run(feeds)
    oracle = None if case.unoracled else tensors.read_values(folder, "oracle") or None
    unit = parity.largest_magnitude(feeds)
    here = parity.compare_case(case, tensors.read_values(folder, "output"), actual, oracle, spec, unit=unit)
    _, figures = parity.judge([here if one.case is case else one for one in comparisons], spec)
    return any(
        row.status == "fail" and row.case == case.name and output_of(row.output, outputs) in outputs for row in figures
    )


def _locate(
    artifact: Artifact,
    model: onnx.ModelProto,
    feeds: Mapping[str, Value],
    spec: ParitySpec,
    providers: Providers,
    outputs: Sequence[str],
) -> Located | None:
    flow = Dataflow(model)

    def inner(names: Sequence[str]) -> Mapping[str, Value]:
        return inner_values(model, providers.target, feeds, names)

    sweep = Sweep(
        dataflow=flow,
        reference=_OnCpu(model, artifact.model.parent, providers, feeds, flow.order),
        feeds=feeds,
        inner=inner,
        folder=artifact.model.parent,
        allowed=spec.budget,
        who="the CPU",
        open_part=providers.target,
    )
    return locate(sweep, outputs)
