"""Export and verify as the tool sees them: a request to a worker, its answer, a result on disk."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnx_ci import lock
from onnx_ci.artifact import golden
from onnx_ci.artifact.layout import Artifact
from onnx_ci.errors import ExitCode, OnnxCiError
from onnx_ci.records import codec
from onnx_ci.records.environment import LockFile
from onnx_ci.records.messages import ExportRequest, Request, VerifyRequest
from onnx_ci.records.model import Config, JobSpec, ModelSpec
from onnx_ci.records.result import COMPILED, EXPORT_TARGET, Finding, Result, finding, label, worst
from onnx_ci.worker.answers import Leg, result_of, why_no_result
from onnx_ci.worker.artifacts import list_variants
from onnx_ci.worker.deployed import with_deployed
from onnx_ci.worker.diagnosis import diagnosed
from onnx_ci.worker.files import write_result
from onnx_ci.worker.launch import Workers
from onnx_ci.worker.memory import with_memory
from onnx_ci.worker.progress import Progress
from onnx_ci.worker.second import second_export

EXPORT_MODULES = ("torch", "onnx", "onnxruntime", "onnxscript")
VERIFY_MODULES = ("numpy", "onnx", "onnxruntime")
_RUN_THE_FILE = ("twin", "contract", "check", "latency")
"""Stages of an export that run what it wrote: where one of them ends the worker, the export is none the worse."""
_NEEDED = {
    "export": frozenset({"torch", "onnx", "onnxruntime", "onnxscript", "numpy"}),
    "verify": frozenset({"onnx", "onnxruntime", "numpy"}),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """A result, and what its worker asked this process to exit with beyond it (a usage error found in user code)."""

    result: Result
    usage_error: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Folders:
    """Where a job reads and writes: the project's root, and what lies in the output folder."""

    root: Path
    out: Path
    golden: Path

    @property
    def artifacts(self) -> Path:
        """One folder a model or variant, and beside them the list of each model's variants."""
        return self.out / "artifacts"

    @property
    def results(self) -> Path:
        """One JSON file a leg."""
        return self.out / "results"

    @property
    def repro(self) -> Path:
        """One folder a leg with a failure that can be shown alone."""
        return self.out / "repro"

    @property
    def logs(self) -> Path:
        """What each worker printed."""
        return self.out / "logs"

    def prepare(self) -> None:
        """Makes the folders, so that one that can't be written is said before any work is done.

        What is in them is for this machine: a .gitignore keeps it out of commits.
        """
        for folder in (self.out, self.results, self.logs):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder):
                    pass
                (self.out / ".gitignore").write_text("*\n")
            except OSError as error:
                raise OnnxCiError(
                    f"the output folder can't be written: {error.strerror}",
                    where=str(folder),
                    hint="Give another folder with --out, or change the permissions.",
                ) from error


def export_models(
    config: Config, models: Sequence[ModelSpec], folders: Folders, workers: Workers, progress: Progress
) -> list[Outcome]:
    """Exports each model in a worker of its own and writes its result; one that breaks does not stop the others."""
    outcomes = []
    for model in models:
        name = label(model.name, model.variant)
        progress.begin(f"{name}: export")
        stored = folders.golden / name
        request = ExportRequest(
            job=config.job(model),
            root=str(folders.root.resolve()),
            artifact=str((folders.artifacts / name).resolve()),
            golden=str(stored.resolve()) if stored.is_dir() else None,
            repro=str((folders.repro / f"{name}.{EXPORT_TARGET}").resolve()),
        )
        leg = Leg(model=model, target=EXPORT_TARGET, verb="export", required=True, lock=config.lock)
        # What concerns the project as a whole is said once, whichever models a job exports.
        more = _of_the_project(config, folders) if model is config.models[0] else []
        outcomes.append(_perform(leg, request, folders, workers, progress, more))
    list_variants(config, folders.artifacts)
    return outcomes


def verify_artifacts(
    artifacts: Sequence[tuple[Artifact, JobSpec]],
    targets: Sequence[str],
    folders: Folders,
    workers: Workers,
    progress: Progress,
    known: Mapping[str, Sequence[Finding]] | None = None,
    base: Path | None = None,
) -> list[Outcome]:
    """Judges each artifact on each target that its config names, or on those of `targets` only.

    Args:
        artifacts: Each with the config that it is judged by.
        targets: Names; none for all.
        folders: Where goldens and results lie.
        workers: In the user's interpreter.
        progress: Told of each leg.
        known: What was found of an artifact before, by its label.
        base: The base's artifacts, to compare latency with.
    """
    outcomes = []
    for artifact, job in artifacts:
        name = label(job.model.name, job.model.variant)
        for target in (target for target in job.targets if not targets or target.name in targets):
            progress.begin(f"{name}: verify on {target.name}")
            stored, before = folders.golden / name, (base / name) if base else None
            request = VerifyRequest(
                artifact=str(artifact.folder.resolve()),
                target=target,
                job=job,
                golden=str(stored.resolve()) if stored.is_dir() else None,
                base=str(before.resolve()) if before else None,
                repro=str((folders.repro / f"{name}.{target.name}").resolve()),
            )
            leg = Leg(model=job.model, target=target.name, verb="verify", required=target.required, lock=job.lock)
            more = (known or {}).get(name, ())
            outcomes.append(_perform(leg, request, folders, workers, progress, more))
    return outcomes


def exit_code(outcomes: Sequence[Outcome]) -> ExitCode:
    """What export or verify alone exits with: usage, then could not tell, then broken."""
    statuses = {outcome.result.status for outcome in outcomes}
    if any(outcome.usage_error for outcome in outcomes):
        return ExitCode.USAGE
    if "error" in statuses or not outcomes:
        return ExitCode.UNKNOWN
    return ExitCode.BROKEN if "fail" in statuses else ExitCode.PASS


def _of_the_project(config: Config, folders: Folders) -> list[Finding]:
    return golden.orphan_findings(folders.golden, [label(model.name, model.variant) for model in config.models])


def _perform(
    leg: Leg,
    asked: ExportRequest | VerifyRequest,
    folders: Folders,
    workers: Workers,
    progress: Progress,
    more: Sequence[Finding] = (),
) -> Outcome:
    log = folders.logs / f"{leg.name}.log"
    log.unlink(missing_ok=True)
    (folders.results / f"{leg.name}.json").unlink(missing_ok=True)
    request = Request(
        id=workers.next_id(),
        verb=leg.verb,
        log=str(log.resolve()),
        time_limit=leg.model.time_limit,
        memory_limit=leg.model.memory_limit,
        payload=codec.encode(asked),
    )
    stages: list[str] = []

    def note(stage: str) -> None:
        stages.append(stage)
        progress.stage(stage)

    start = time.monotonic()
    event = workers.perform(request, note)
    while isinstance(asked, ExportRequest) and event.crashed and stages and stages[-1] in _RUN_THE_FILE:
        asked, told = _without_the_crash(asked, stages[-1], why_no_result(event, leg, log, stages))
        more = [*more, told]
        event = workers.perform(replace(request, id=workers.next_id(), payload=codec.encode(asked)), note)
    spent = time.monotonic() - start
    result = result_of(event, leg, workers, log, stages)
    if isinstance(asked, ExportRequest):
        result = second_export(result, asked, request, spent, workers, progress.stage, time.monotonic)
        result = diagnosed(result, asked, request, spent, workers, progress.stage, time.monotonic)
    else:
        result = with_deployed(result, asked, request, spent, workers, progress.stage)
        result = with_memory(result, asked, request, time.monotonic() - start, workers, progress.stage, time.monotonic)
    result = _judge_environment(result, leg, more)
    write_result(folders.results, leg.name, result)
    progress.end(result, log)
    return Outcome(result=result, usage_error=event.kind == "raised" and event.exit_code == ExitCode.USAGE)


def _without_the_crash(asked: ExportRequest, stage: str, crash: Finding) -> tuple[ExportRequest, Finding]:
    """The same export without what has ended its worker, and what is said of it: torch.compile is no promise."""
    if stage == "latency" and asked.compiles and asked.job.latency.torch_compile:
        said = f"{COMPILED} was not timed, since {crash.message}"
        return replace(asked, compiles=False), finding("latency.measured", "skip", COMPILED, said)
    return replace(asked, runs_file=False), crash


def _judge_environment(result: Result, leg: Leg, more: Sequence[Finding]) -> Result:
    """Adds what the lock files say of the environment that the result was made in."""
    needed = _NEEDED[leg.verb]
    found = [
        *lock.check_environment(result.environment, needed),
        *(lock.compare(leg.lock, result.environment, needed) if leg.lock.files else []),
    ]
    locks = [LockFile(path=path, sha256=digest) for path, digest in sorted(leg.lock.files.items())]
    # A package that is not there is why the work broke off; it is no fault of ours then.
    explained = any(entry.rule == "environment.missing" and entry.status == "error" for entry in found)
    own = [entry for entry in result.findings if not (explained and entry.rule == "environment.internal")]
    findings = [*found, *own, *more]
    return replace(
        result,
        findings=findings,
        status=worst([result.status, *(entry.status for entry in findings)]),
        environment=replace(result.environment, locks=locks),
    )
