"""The export job of one model, top to bottom: entrypoint, cases, graph, evaluation, artifact, result."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from onnx_ci.artifact import layout, machine
from onnx_ci.export import (
    artifact,
    checks,
    derived,
    evaluate,
    graph,
    others,
    refused,
    retry,
    rewrite,
    state,
    stops,
)
from onnx_ci.export.clock import Stages
from onnx_ci.export.loading import Loaded, load
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.records.contract import Contract
from onnx_ci.records.environment import Environment
from onnx_ci.records.messages import ExportRequest
from onnx_ci.records.result import EXPORT_TARGET, SCHEMA_VERSION, Finding, Result, Timing, finding, worst

_UNFIT = ("export.training-mode", "export.random", "contract.state")
"""Rules that a module breaks whose answers are not to be compared with."""
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
    made = artifact.write(request, subject, built, example, user, environment, stages)
    promised = layout.Artifact(target).contract()
    found = located(refused.merged([*findings, *_without_reference(made.findings, findings)]))
    return _result(request, environment, stages, found, made.digest, made.timings, promised)


def prepare(given: Loaded) -> tuple[Subject | None, list[Finding]]:
    """Judges the module and calls it on the example; None where it raises."""
    example, call = given.example, given.call(given.example)
    told = checks.mode_and_state_findings(given.loaded.module, call, given.places, lambda: others.others(given))
    judged = [*given.findings, *told]
    eager = state.answer(given.loaded.module, call)
    if eager.error:
        stop = stops.Stop("eager", eager.error.splitlines()[0][:300], place=given.places.deepest(eager.frames))
        return None, [*judged, stops.judge(stop, given.options.exporter)]
    return given.subject(example, eager), judged


def _without_reference(more: Sequence[Finding], findings: Sequence[Finding]) -> list[Finding]:
    """Where the module is no reference, what blames the exporter is left out: there is another thing to do first."""
    unfit = next((one for one in findings if one.status == "fail" and one.rule in _UNFIT), None)
    if unfit is None:
        return list(more)
    kept = [one for one in more if one.rule not in _OF_THE_EXPORTER]
    why = f"not judged, since the module is no reference ({unfit.rule})"
    return [*kept, *(finding(rule, "skip", "", why) for rule in _OF_THE_EXPORTER)]


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
