"""The export job of one model, top to bottom: entrypoint, cases, graph, evaluation, artifact, result."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from onnx_ci.artifact import layout, machine
from onnx_ci.errors import MachineError
from onnx_ci.export import (
    arguments,
    check,
    checks,
    derived,
    edges,
    evaluate,
    excluded,
    gather,
    goldens,
    graph,
    operators,
    others,
    outside,
    probe,
    program,
    promise,
    refused,
    retry,
    rewrite,
    save,
    state,
    stops,
    timing,
    translation,
    unordered,
)
from onnx_ci.export.clock import Stages
from onnx_ci.export.evaluate import Evaluation
from onnx_ci.export.loading import Loaded, load
from onnx_ci.export.probe import Probe
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.export.types import RunCase
from onnx_ci.records.cases import SCHEMA_VERSION as CASES_VERSION
from onnx_ci.records.cases import CaseList
from onnx_ci.records.contract import Contract
from onnx_ci.records.environment import Environment
from onnx_ci.records.messages import ExportRequest
from onnx_ci.records.result import EXPORT_TARGET, SCHEMA_VERSION, Finding, Result, Timing, finding, worst

_UNFIT = ("export.training-mode", "export.random", "contract.state")
"""Rules that a module breaks whose answers are not to be compared with."""
_COMPILE_SHARE = 0.5
_OF_THE_EXPORTER = ("parity.translation", "parity.divergence")


def export(request: ExportRequest, progress: Callable[[str], None]) -> Result:
    """Exports one model, and says what was found on the way.

    Raises:
        OnnxCiError: Nothing could be told: the config asks for what can't be, the user's code raised, the disk is full.
    """
    stages = Stages(progress)
    target = Path(request.artifact)
    shutil.rmtree(target, ignore_errors=True)  # whatever happens, an older export must not ship as this one
    if request.repro:
        shutil.rmtree(request.repro, ignore_errors=True)
    environment = machine.describe(request.job.lock)
    start = state.RandomState.now()
    with stages("entrypoint"):
        given = load(request.job.model, Path(request.root))
    with stages("first call"):
        subject, findings = prepare(given)
    example, user = given.example, given.user

    def located(found: Sequence[Finding]) -> list[Finding]:
        return [given.places.located(one, given.loaded.module, given.spec) for one in found]

    if subject is None:
        return _result(request, environment, stages, located([*findings, *rewrite.skipped(request.job.model)]))
    if subject.spec.reference is not None:
        with stages("rewrite"):
            findings += rewrite.judge(subject, example, user, Path(request.root), start)
    built = graph.build(subject, stages)
    subject, example, built = retry.settled(subject, example, user, built, lambda other: graph.build(other, stages))
    if not isinstance(built, Graph):
        outside = [evaluate.contradicts(example)] if example.problems else []
        return _result(request, environment, stages, located([*findings, *outside, *built]))
    if built.derived:
        subject = replace(subject, declared=derived.substituted(subject.declared, built.derived))
        example, *user = (derived.remeasured(case, subject.declared) for case in (example, *user))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
            made = _Maker(request, subject, built, example, user, Path(folder) / "new", environment, stages)
            more, digest, timings = made.make()
            (Path(folder) / "new").rename(target)
    except OSError as error:
        raise MachineError(
            f"the artifact can't be written: {error.strerror or error}",
            where=str(error.filename or target),
            hint="Is the disk full, or the folder read-only? Name another one with --out.",
        ) from error
    promised = layout.Artifact(target).contract()
    found = located(refused.merged([*findings, *_without_reference(more, findings)]))
    return _result(request, environment, stages, found, digest, timings, promised)


def prepare(given: Loaded) -> tuple[Subject | None, list[Finding]]:
    """Judges the module and calls it on the example; None where it raises."""
    example, call = given.example, given.call(given.example)
    told = checks.mode_and_state_findings(given.loaded.module, call, given.places, lambda: others.others(given))
    judged = [*given.findings, *told]
    with state.preserved(given.loaded.module):
        eager = arguments.copied(arguments.call(given.loaded.module, call))
    if eager.error:
        stop = stops.Stop("eager", eager.error.splitlines()[0][:300], place=given.places.deepest(eager.frames))
        return None, [*judged, stops.judge(stop, given.options.exporter)]
    return given.subject(example, eager), judged


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

    def make(self) -> tuple[list[Finding], str, list[Timing]]:
        """All of it, in order; gives the findings, the artifact's digest and the timings."""
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
        return [self._exported(seen), *findings], digest, timings

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


def _without_reference(more: Sequence[Finding], findings: Sequence[Finding]) -> list[Finding]:
    """Where the module is no reference, what blames the exporter is left out: there is another thing to do first."""
    unfit = next((one for one in findings if one.status == "fail" and one.rule in _UNFIT), None)
    if unfit is None:
        return list(more)
    kept = [one for one in more if one.rule not in _OF_THE_EXPORTER]
    why = f"not judged, since the module is no reference ({unfit.rule})"
    return [*kept, *(finding(rule, "skip", "", why) for rule in _OF_THE_EXPORTER)]


def _settled(findings: Sequence[Finding], later: Sequence[Finding]) -> list[Finding]:
    """All of them, without what was a doubt about a dim before it was tried."""
    tried = {(one.rule, one.subject) for one in later}
    return [*(one for one in findings if (one.rule, one.subject) not in tried), *later]


def _result(
    request: ExportRequest,
    environment: Environment,
    stages: Stages,
    findings: Sequence[Finding],
    digest: str | None = None,
    timings: Sequence[Timing] = (),
    promised: Contract | None = None,
) -> Result:
    spec = request.job.model
    found = sorted(findings, key=lambda item: item.stage != "export")
    return Result(
        schema_version=SCHEMA_VERSION,
        model=spec.name,
        variant=spec.variant,
        target=EXPORT_TARGET,
        required=True,
        status=worst([item.status for item in found]),
        artifact=digest,
        environment=environment,
        stages=stages.costs,
        findings=list(found),
        latency=list(timings),
        contract=promised,
    )
