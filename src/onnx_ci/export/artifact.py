"""Writes the artifact of a finished graph: cases, file, records and manifest, and what running the file shows."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnx_ci.artifact import layout
from onnx_ci.errors import MachineError
from onnx_ci.export import (
    check,
    edges,
    evaluate,
    excluded,
    gather,
    goldens,
    operators,
    outside,
    probe,
    program,
    promise,
    save,
    timing,
    translation,
    unordered,
)
from onnx_ci.export.clock import Stages
from onnx_ci.export.evaluate import Evaluation
from onnx_ci.export.probe import Probe
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import RunCase
from onnx_ci.records.cases import SCHEMA_VERSION as CASES_VERSION
from onnx_ci.records.cases import CaseList
from onnx_ci.records.environment import Environment
from onnx_ci.records.messages import ExportRequest
from onnx_ci.records.result import Finding, Timing, finding

_COMPILE_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Written:
    """What was found on the way, the artifact's digest, and what was timed."""

    findings: list[Finding]
    digest: str
    timings: list[Timing]


def write(
    request: ExportRequest,
    subject: Subject,
    built: Graph,
    example: RunCase,
    user: Sequence[RunCase],
    environment: Environment,
    stages: Stages,
) -> Written:
    """Writes it beside its place, and puts it there when it is whole.

    Raises:
        MachineError: The disk is full, or the folder read-only.
    """
    target = Path(request.artifact)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
            new = Path(folder) / "new"
            written = _Maker(request, subject, built, example, user, new, environment, stages).make()
            new.rename(target)
    except OSError as error:
        raise MachineError(
            f"the artifact can't be written: {error.strerror or error}",
            where=str(error.filename or target),
            hint="Is the disk full, or the folder read-only? Name another one with --out.",
        ) from error
    return written


class _Maker:
    """Writes the artifact of a finished graph."""

    def __init__(
        self,
        request: ExportRequest,
        subject: Subject,
        built: Graph,
        example: RunCase,
        user: Sequence[RunCase],
        folder: Path,
        environment: Environment,
        stages: Stages,
    ) -> None:
        self._request, self._subject, self._graph = request, subject, built
        self._example, self._user, self._folder = example, list(user), folder
        self._environment, self._stages = environment, stages
        self._repros = Path(request.repro) if request.repro else None

    def make(self) -> Written:
        """All of it, in order."""
        self._folder.mkdir()
        findings = list(self._graph.findings)
        seen = self._evaluate()
        self._graph, corrected = edges.correct_output_sizes(self._graph, seen.sizes)
        findings += [*seen.findings, *corrected, *self._judge_graph()]
        before = self._folder.with_name("unoptimized") if self._graph.unoptimized is not None else None
        with self._stages("save"):
            self._save(before)
        findings += self._judge_opset()
        timings = list[Timing]()
        if self._request.runs_file:
            findings, timings = self._run(findings, seen, before)
        else:
            findings += probe.untried(self._graph)
            self._write_records(seen, {}, None)
        with self._stages("golden"):
            golden = goldens.readable(self._request.golden)
            findings += goldens.judge(self._subject, self._graph, golden) if golden else []
        digest = layout.write_manifest(self._folder)
        return Written([self._exported(seen), *findings], digest, timings)

    def _run(
        self, findings: list[Finding], seen: Evaluation, before: Path | None
    ) -> tuple[list[Finding], list[Timing]]:
        """All that runs the written file, a fault of which may end this process; the findings with what it shows."""
        with self._stages("twin"):
            seen.cases, ordered = unordered.judge(seen.cases, self._folder)
            translated = translation.judge(seen.cases, self._subject.module, self._folder, before)
            seen.cases = translated.cases
            findings = [*findings, *ordered, *translated.findings]
        with self._stages("contract"):
            tried = Probe(self._subject, self._graph, self._folder)
            judged, steps = probe.judge(tried, self._example, self._user)
            findings = _settled([*findings, *judged], outside.judge(tried, self._user))
            findings = excluded.settle(tried, findings, self._example, self._user)
            self._write_records(seen, steps, translated.made)
        with self._stages("check"):
            targets = self._request.job.targets
            findings += check.judge(
                self._subject, self._graph, seen.cases, self._folder, targets, self._repros, translated.wrong
            )
        with self._stages("latency"):
            timings, told = self._time()
            return [*findings, *told], timings

    def _time(self) -> tuple[list[Timing], list[Finding]]:
        """Compiling may have half of what time_limit leaves: the second export comes after it."""
        spent = sum(cost.seconds for cost in self._stages.costs.values())
        seconds = _COMPILE_SHARE * max(self._subject.spec.time_limit - spent, 0.0)
        spec = self._request.job.latency
        spec = replace(spec, torch_compile=spec.torch_compile and self._request.compiles)
        return timing.compare(self._subject, self._graph, self._example, self._folder, spec, seconds)

    def _evaluate(self) -> Evaluation:
        example, user = self._known(self._example), [self._known(case) for case in self._user]
        with self._stages("cases"):
            made = gather.gather(self._subject, self._graph, example, user, self._request.job.latency.shapes)
        with self._stages("run cases"):
            cases = [*(user or [example]), *made.cases]
            seen = evaluate.evaluate(self._subject, self._graph, cases, self._folder)
        seen.notes[:0] = made.notes
        seen.findings += made.findings
        seen.batch = made.batch.resolved(seen.cases)
        return seen

    def _known(self, case: RunCase) -> RunCase:
        """The case with what the module gave for it, if it is the export's own."""
        return replace(case, given=self._subject.eager) if case.inputs is self._subject.example else case

    def _judge_graph(self) -> list[Finding]:
        return [
            *edges.lost_inputs(self._subject, self._graph),
            *edges.lost_outputs(self._subject, self._graph),
            *edges.other_dtypes(self._subject, self._graph),
            *operators.findings(self._graph.model, self._graph.source_map.values),
        ]

    def _judge_opset(self) -> list[Finding]:
        """What export_kwargs ask for; what the config asks for is held against the file by `verify`."""
        asked, delivered = self._subject.options.opset, program.opset_of(self._graph.model)
        if asked is None or asked == delivered or self._subject.spec.export.opset is not None:
            return []
        return [
            finding(
                "contract.opset", "fail", "opset",
                f"export_kwargs() asks for opset {asked}, and the exporter delivered {delivered}",
                hint=f"Ask for {delivered} if the runtime in production reads it; the exporter has no lower one.",
                data={"asked": asked, "delivered": delivered},
            )
        ]  # fmt: skip

    def _save(self, before: Path | None) -> None:
        """Writes the file that ships and, beside the artifact, the unoptimized graph; then no weight is held."""
        save.save(self._graph.model, self._folder, single_file=self._subject.options.single_file)
        save.release(self._graph.model)
        if before is not None and self._graph.unoptimized is not None:
            before.mkdir()
            save.save(self._graph.unoptimized, before, single_file=False)
            save.release(self._graph.unoptimized)

    def _write_records(self, seen: Evaluation, steps: dict[str, int], made: list[str] | None) -> None:
        promised = promise.contract(self._subject, self._graph, steps, Path(self._request.root), self._environment)
        layout.write_record(self._folder, layout.CONTRACT, promised)
        layout.write_record(self._folder, layout.CONFIG, self._request.job)
        layout.write_record(self._folder, layout.SOURCE_MAP, self._graph.source_map)
        listed = CaseList(schema_version=CASES_VERSION, cases=seen.cases, notes=seen.notes, batch=seen.batch, made=made)
        layout.write_record(self._folder, layout.CASES, listed)

    def _exported(self, seen: Evaluation) -> Finding:
        count = sum(1 for _ in program.nodes(self._graph.model))
        opset, how = program.opset_of(self._graph.model), self._graph.strategy
        return finding(
            "export.exported", "pass", "",
            f"{count} nodes, opset {opset}, IR version {self._graph.model.ir_version}, {len(seen.cases)} cases",
            data={
                "strategy": how, "nodes": count, "weights": self._subject.weights, "program": self._graph.program,
            },
        )  # fmt: skip


def _settled(findings: Sequence[Finding], later: Sequence[Finding]) -> list[Finding]:
    """All of them, without what was a doubt about a dim before it was tried."""
    tried = {(one.rule, one.subject) for one in later}
    return [*(one for one in findings if (one.rule, one.subject) not in tried), *later]
