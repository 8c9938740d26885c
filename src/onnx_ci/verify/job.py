"""The verify job: one artifact on one target, stage by stage, without torch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from onnx_ci.artifact import layout
from onnx_ci.artifact.layout import Artifact
from onnx_ci.artifact.machine import describe, today
from onnx_ci.errors import OnnxCiError
from onnx_ci.records import cases, contract, source_map, strict
from onnx_ci.records.cases import CaseList
from onnx_ci.records.contract import Contract
from onnx_ci.records.environment import Environment
from onnx_ci.records.messages import VerifyRequest
from onnx_ci.records.model import CPU
from onnx_ci.records.result import SCHEMA_VERSION, STAGES, Result, finding, worst
from onnx_ci.records.source_map import SourceMap
from onnx_ci.verify import (
    batch,
    calibrated,
    divergence,
    function,
    golden,
    parity,
    placement,
    places,
    precision,
    refusal,
    shapes,
    signature,
    structure,
    untested,
    validated,
)
from onnx_ci.verify.leg import Leg, judge_latency, judge_provider
from onnx_ci.verify.session import RuntimeFault, available_providers, known_providers
from onnx_ci.verify.stages import Stages

Versioned = TypeVar("Versioned", Contract, CaseList, SourceMap)


def verify(request: VerifyRequest, progress: Callable[[str], None]) -> Result:
    """Judges the bytes of an artifact on a target.

    Structure comes first and can end it all: nothing runs on bytes that are not the exported ones. After that each
    stage answers for itself; one that can't run says why. Latency alone needs parity and provider to have passed.
    Arithmetic is strict here: where the target's options loosen it, `deployed` judges them, and provider and latency.
    """
    loosened = strict.loosened(request.target)
    os.environ.update(strict.environment(request.target))  # NVIDIA's libraries read it when they start
    if request.repro:
        shutil.rmtree(request.repro, ignore_errors=True)  # of an earlier run: nothing here speaks of it
    target, spec = strict.strict(request.target), request.job.model.parity
    job = Leg(request, Artifact(Path(request.artifact)), Stages(progress), target, spec)
    environment = describe(request.job.lock)
    _structure(job, environment.packages)
    _contract(job)
    verdict = _parity(job, environment)
    _contract_by_cases(job)
    _function(job)
    _golden(job)
    if job.session is None or not loosened:
        judge_provider(job)
        judge_latency(job, environment.cores)
    if job.session is not None:
        job.session.close()
    _unoptimized(job, verdict)
    _divergence(job, verdict)
    outputs = [item.name for item in job.model.graph.output] if job.model is not None else []
    findings = places.placed(job.findings, outputs, job.source_map, request.job.model)
    findings.sort(key=lambda one: STAGES.index(one.stage))
    return Result(
        schema_version=SCHEMA_VERSION,
        model=request.job.model.name,
        variant=request.job.model.variant,
        target=job.target.name,
        required=job.target.required,
        status=worst([one.status for one in findings]),
        artifact=_digest(job.artifact),
        environment=environment,
        provider=job.target.provider if job.session is not None else None,
        stages=job.stages.costs,
        findings=findings,
        parity=job.figures,
        latency=job.timings,
    )


def _structure(job: Leg, packages: dict[str, str]) -> None:
    with job.stages.run("structure"):
        found = structure.check_files(job.artifact, job.request.job.model.custom_ops)
        job.findings += found.findings
        job.model = found.model
        if job.model is None:
            job.blocked = "the artifact is not sound (stage structure)"
            return
        job.contract = _read(job, layout.CONTRACT, job.artifact.contract, contract.SCHEMA_VERSION)
        job.cases = _read(job, layout.CASES, job.artifact.cases, cases.SCHEMA_VERSION)
        origins = _read(job, layout.SOURCE_MAP, job.artifact.source_map, source_map.SCHEMA_VERSION)
        job.source_map = origins or job.source_map
        missing = placement.missing(job.target, available_providers(), known_providers(), packages)
        if missing:
            job.findings += [*structure.settle(found.open_questions, opened=True), missing]
            job.blocked = f"{job.target.provider} is not there"
            job.skip("structure.load", job.blocked)
            return
        try:
            session = job.opener.open()
        except RuntimeFault as fault:
            job.findings += structure.settle(found.open_questions, opened=False)
            job.findings.append(structure.not_opened(fault, job.target.provider, job.model, job.source_map))
            job.blocked = "ONNX Runtime does not open the file (stage structure)"
            return
        job.findings += structure.settle(found.open_questions, opened=True)
        active = placement.active(job.target, session.active, session.provider_options(), os.environ)
        if active.status != "pass" or not strict.loosened(job.request.target):
            job.findings.append(active)
        if active.status != "pass":
            job.blocked = f"{job.target.provider} is not active"
            job.skip("structure.load", job.blocked)
            session.close()
            return
        job.findings.append(structure.opened(job.target.provider))
        job.session = session


def _contract(job: Leg) -> None:
    with job.stages.run("contract"):
        if job.model is None or job.contract is None:
            job.skip("contract.names", job.blocked or f"{layout.CONTRACT} can't be read")
            return
        declared = job.request.job.model
        job.findings += signature.judge(job.model, job.contract, declared)
        job.findings.append(precision.judge(job.model, job.contract, job.source_map))
        job.findings += refusal.judge(job.model, job.contract, job.session or job.blocked)
        if job.cases is not None:
            job.findings.append(validated.judge(job.artifact, job.contract, job.cases.cases))
            job.findings += untested.judge(job.contract, job.cases, declared.dims)


def _parity(job: Leg, environment: Environment) -> parity.Verdict | None:
    with job.stages.run("parity"):
        if job.session is None or job.cases is None:
            job.skip("parity.run", job.blocked or f"{layout.CASES} can't be read")
            return None
        job.spec, told = calibrated.apply(job.spec, job.target, job.contract, environment)
        runs = parity.run_cases(job.session, job.artifact, job.cases.cases, job.spec, inner=job.opener.inner())
        verdict = parity.judge(runs, job.cases.cases, job.spec, today())
        job.findings += [*told, *verdict.findings]
        job.figures = verdict.figures
        job.compared = runs.comparisons
        return verdict


def _function(job: Leg) -> None:
    """The file in float64: it asks for no provider, so it is told where the target is not there too."""
    with job.stages.run("parity", shown="twin"):
        if job.model is None or job.cases is None:
            job.skip("parity.function", job.blocked or f"{layout.CASES} can't be read")
            return
        judged = function.judge(job.artifact, job.cases, job.contract.exporter if job.contract else "dynamo")
        job.findings += judged.findings
        job.figures = function.shown(job.figures, judged)


def _contract_by_cases(job: Leg) -> None:
    with job.stages.run("contract"):
        if job.model is None or job.contract is None or job.cases is None:
            job.skip("contract.output-shape", job.blocked or f"{layout.CONTRACT} or {layout.CASES} can't be read")
            return
        outputs = signature.read(job.model).outputs
        job.findings += shapes.judge(job.contract, outputs, job.cases.cases, job.compared)
        if job.session is not None:
            answers = parity.Answers(job.session, job.artifact)
            job.findings += batch.judge(job.cases, answers, job.spec, job.figures)
        elif job.cases.batch is not None:
            job.skip(batch.SPLIT, job.blocked)
            job.skip(batch.PERMUTED, job.blocked)


def _golden(job: Leg) -> None:
    with job.stages.run("golden"):
        folder = Path(job.request.golden) if job.request.golden else None
        if folder is None or not folder.is_dir():
            whole = job.request.job
            job.findings.append(golden.absent(job.name, Path(whole.golden_dir), whole.models, job.contract))
        elif job.session is None or job.contract is None:
            job.skip("golden.drift", job.blocked or f"{layout.CONTRACT} can't be read")
        else:
            who, inner = job.target.name, job.opener.inner()
            job.findings += golden.judge(job.session, folder, job.contract, job.spec, who, job.name, inner)


def _unoptimized(job: Leg, verdict: parity.Verdict | None) -> None:
    """The graph as it is in the file; last, so that the weights are in memory once at a time."""
    if verdict is None or job.cases is None or job.target.provider != CPU:
        return
    with job.stages.run("parity", shown="unoptimized"):
        try:
            session = job.opener.open(optimized=False)
        except RuntimeFault as fault:
            message = f"the unoptimized graph does not open: {fault.message}"
            job.findings.append(finding("parity.unoptimized", "warn", "", message))
            return
        inner = job.opener.inner(optimized=False)
        runs = parity.run_cases(session, job.artifact, job.cases.cases, job.spec, inner=inner, twice=False)
        session.close()
        job.findings.append(parity.judge_unoptimized(runs, verdict, job.spec, today()))


def _divergence(job: Leg, verdict: parity.Verdict | None) -> None:
    """The provider's own rung; a file that is wrong on the CPU too was looked into by the export."""
    if verdict is None or verdict.passed or job.target.provider == CPU:
        return
    with job.stages.run("parity", shown="divergence"):
        both = divergence.Providers(job.target.provider, job.opener.part(), job.opener.on_cpu().part(optimized=False))
        repros = Path(job.request.repro) if job.request.repro else None
        job.findings += divergence.judge(
            job.artifact, job.compared, verdict.figures, job.spec, both, job.source_map, repros
        )


def _read(job: Leg, name: str, read: Callable[[], Versioned], version: int) -> Versioned | None:
    hint = "Export and verify with the same version of onnx-ci."
    try:
        record = read()
    except OnnxCiError as error:
        message, hint = f"{name} can't be read: {error.what}", error.hint
    else:
        if record.schema_version == version:
            return record
        message = f"{name} has schema version {record.schema_version}, this onnx-ci reads {version}"
    job.findings.append(finding("structure.unreadable", "error", name, message, hint=hint))
    return None


def _digest(artifact: Artifact) -> str | None:
    try:
        return artifact.digest()
    except (OnnxCiError, OSError):
        return None
