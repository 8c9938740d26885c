"""The cases of an artifact through the shipped file on the CPU: what it gave, and which outputs fail in which case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from onnx_ci.artifact import layout, log, machine, tensors
from onnx_ci.artifact.tensors import Value
from onnx_ci.divergence.session import CpuSession
from onnx_ci.export import arguments, casefiles
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import NamedInputs
from onnx_ci.numerics import parity
from onnx_ci.numerics.parity import CaseComparison
from onnx_ci.numerics.words import case_text
from onnx_ci.records.cases import Case
from onnx_ci.records.model import CPU, ParitySpec, TargetSpec


@dataclass(frozen=True, slots=True)
class Seen:
    """What the cases gave, with all that is needed to look closer."""

    subject: Subject
    graph: Graph
    folder: Path
    spec: ParitySpec
    comparisons: list[CaseComparison] = field(default_factory=list)

    @classmethod
    def of(
        cls, subject: Subject, graph: Graph, cases: Sequence[Case], folder: Path, targets: Sequence[TargetSpec]
    ) -> Seen:
        """Runs each case once; none where the runtime does not take the file, which `verify` tells."""
        seen = cls(subject, graph, folder, _calibrated(subject.spec.parity, targets))
        try:
            file = seen.open()
        except Exception:  # ONNX Runtime's errors have no common base
            return seen
        for case in cases:
            if not case.refused:
                log.say(f"ONNX Runtime runs {case_text(case.name, case.dims)}")
                try:
                    seen.comparisons.append(seen.compare(case, file.run(seen.values(case, "input"))))
                except Exception:  # it stops at this size, which `parity.run` tells
                    continue
        return seen

    def open(self, **how: Any) -> CpuSession:
        """The file that ships."""
        return CpuSession(self.folder / layout.MODEL, custom_ops=self.custom_ops, **how)

    @property
    def custom_ops(self) -> list[Path]:
        """Libraries of operators, as paths."""
        return [Path(path).resolve() for path in self.subject.spec.custom_ops]

    def values(self, case: Case, kind: tensors.Kind) -> dict[str, Value]:
        """What the artifact holds of a case."""
        return tensors.read_values(self.folder / f"test_data_set_{case.index}", kind)

    def compare(self, case: Case, actual: Mapping[str, Value]) -> CaseComparison:
        """Outputs of a case beside PyTorch's."""
        oracle = None if case.unoracled else self.values(case, "oracle") or None
        unit = parity.largest_magnitude(self.values(case, "input"))
        return parity.compare_case(case, self.values(case, "output"), actual, oracle, self.spec, unit=unit)

    def failing(self, comparisons: Sequence[CaseComparison] | None = None) -> list[tuple[Case, list[str]]]:
        """The cases in which outputs fail, the smallest inputs first."""
        judged = self.comparisons if comparisons is None else comparisons
        if not judged:
            return []
        _, figures = parity.judge(judged, self.spec, today=machine.today())
        found = []
        for one in judged:
            rows = [row.output for row in figures if row.case == one.case.name and row.status == "fail"]
            bases = dict.fromkeys(item.base for item in one.outputs if item.output in rows)
            if bases:
                found.append((one.case, list(bases)))
        return sorted(found, key=lambda pair: self._elements(pair[0]))

    def fails(self, case: Case, actual: Mapping[str, Value], outputs: Sequence[str]) -> bool:
        """Whether these outputs fail with other values in this case, all else as it was: budgets are pooled."""
        here = self.compare(case, {**self.values(case, "output"), **actual})
        judged = [here if one.case is case else one for one in self.comparisons]
        return any(one is case and set(outputs) & set(names) for one, names in self.failing(judged))

    def are_exact(self, case: Case, outputs: Sequence[str]) -> bool:
        """Whether none of these outputs is of floats."""
        here = next(one for one in self.comparisons if one.case is case)
        return all(item.exact is not None for item in here.outputs if item.base in outputs)

    def inputs(self, case: Case) -> NamedInputs:
        """As forward takes them; what is no tensor is the example's."""
        paths = {leaf.path: name for name, leaf in self.graph.inputs.items()}
        read = self.values(case, "input")

        def change(path: str, leaf: Any) -> Any:
            if path not in paths or not isinstance(leaf, torch.Tensor):
                return leaf
            value = casefiles.to_tensor(read[paths[path]], where=path).to(leaf.device)
            return torch.view_as_complex(value) if leaf.is_complex() else value

        return arguments.rebuild(self.subject.example, change)

    def _elements(self, case: Case) -> int:
        return sum(getattr(value, "size", 0) for value in self.values(case, "input").values())


def _calibrated(spec: ParitySpec, targets: Sequence[TargetSpec]) -> ParitySpec:
    """With the widest calibration of a target on the CPU: whether it counts there, its own job tells."""
    names = [target.name for target in targets if target.provider == CPU]
    known = [spec.calibrations[name] for name in names if name in spec.calibrations]
    return replace(spec, calibration=max(known, key=lambda one: max(one.observed.values(), default=0.0), default=None))
