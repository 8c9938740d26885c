"""The commands that start the user's interpreter, read top to bottom: config, plan, export, verify, report."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from onnx_ci import commits, lock
from onnx_ci.artifact import golden
from onnx_ci.artifact.layout import Artifact
from onnx_ci.config import select
from onnx_ci.config.load import load
from onnx_ci.errors import ExitCode, OnnxCiError, UsageError
from onnx_ci.records.environment import Environment
from onnx_ci.records.model import CPU, Config, JobSpec, ModelSpec, TargetSpec
from onnx_ci.records.result import label, worst
from onnx_ci.worker import calibrate as calibration
from onnx_ci.worker import job, stale
from onnx_ci.worker.answers import environment_of
from onnx_ci.worker.artifacts import count_legs, find_artifacts, write_provenance
from onnx_ci.worker.files import claimed
from onnx_ci.worker.interpreter import find_python
from onnx_ci.worker.launch import Workers
from onnx_ci.worker.progress import progress_for

Environ = Mapping[str, str]


def run(
    *,
    config: Path | None,
    models: Sequence[str],
    targets: Sequence[str],
    out: Path,
    base: Path | None,
    history: Path | None,
    python: str | None,
    comment: bool,
    author: str,
    environment: Environ,
) -> ExitCode:
    """Exports, verifies and reports; what one model breaks is that model's only."""
    from onnx_ci.plan import job as plan_job
    from onnx_ci.report import job as report_job

    loaded = _load(config)
    selected, wanted = select.models(loaded, models), select.targets(loaded, targets)
    folders = _folders(loaded, out)
    folders.prepare()
    interpreter = find_python(python, environment, job.EXPORT_MODULES)
    plan_job.run(loaded, out=out, environ=environment, models=models, targets=targets, root=folders.root)
    with claimed(out), progress_for(sys.stderr, environment, len(selected) * (1 + len(wanted))) as progress:
        with _exporters(interpreter, folders, environment, selected) as workers:
            exported = job.export_models(loaded, selected, folders, workers, progress)
        _say_commit(folders, environment)
        artifacts = [_artifact(loaded, model, out) for model in selected if _exported(model, out)]
        with _judges(interpreter, folders, environment) as workers:
            names = [target.name for target in wanted]
            job.verify_artifacts(artifacts, names, folders, workers, progress, base=base)
    code = report_job.run(
        out=out,
        plan=out / plan_job.PLAN,
        base=base,
        history=history,
        comment=comment,
        author=author,
        planned_only=True,
        env=environment,
        stdout=sys.stdout,
    )
    return ExitCode.USAGE if any(outcome.usage_error for outcome in exported) else code


def plan(
    *,
    config: Path | None,
    models: Sequence[str],
    targets: Sequence[str],
    out: Path,
    shards: int,
    environment: Environ,
) -> ExitCode:
    """Says what a run is expected to give, and the matrices that spread it."""
    from onnx_ci.plan import job as plan_job

    loaded = _load(config)
    _folders(loaded, out).prepare()
    root = Path(loaded.root)
    found, _ = plan_job.run(
        loaded, out=out, environ=environment, models=models, targets=targets, shards=shards, root=root
    )
    for leg in found.legs:
        print(f"{label(leg.model, leg.variant)}: {leg.target}{f' ({leg.not_run})' if leg.not_run else ''}")
    return ExitCode.PASS


def export(
    *, config: Path | None, models: Sequence[str], out: Path, python: str | None, environment: Environ
) -> ExitCode:
    """Exports the models and writes what was found beside the artifacts."""
    loaded = _load(config)
    selected = select.models(loaded, models)
    folders = _folders(loaded, out)
    folders.prepare()
    interpreter = find_python(python, environment, job.EXPORT_MODULES)
    with (
        claimed(out),
        progress_for(sys.stderr, environment, len(selected)) as progress,
        _exporters(interpreter, folders, environment, selected) as workers,
    ):
        outcomes = job.export_models(loaded, selected, folders, workers, progress)
        _say_commit(folders, environment)
    _tell(outcomes, folders, environment)
    return job.exit_code(outcomes)


def verify(
    *,
    config: Path | None,
    models: Sequence[str],
    targets: Sequence[str],
    out: Path,
    artifacts: Path | None,
    base: Path | None,
    python: str | None,
    environment: Environ,
) -> ExitCode:
    """Judges artifacts under the config that each was exported with.

    `config` says where the project is, and that no artifact may have been exported under another one.
    """
    found = find_artifacts(artifacts or out / "artifacts", models)
    total = count_legs(found, targets)
    known = stale.judge(config, found) if config else {}
    if base and not base.is_dir():
        print(f"There is no base in {base}: latency is compared with nothing.", file=sys.stderr)
    root = config.resolve().parent if config else Path.cwd()
    folders = job.Folders(root=root, out=out, golden=root / found[0][1].golden_dir)
    folders.prepare()
    interpreter = find_python(python, environment, job.VERIFY_MODULES)
    with (
        progress_for(sys.stderr, environment, total) as progress,
        _judges(interpreter, folders, environment) as workers,
    ):
        outcomes = job.verify_artifacts(found, targets, folders, workers, progress, known, base)
    _tell(outcomes, folders, environment)
    return job.exit_code(outcomes)


def _tell(outcomes: Sequence[job.Outcome], folders: job.Folders, environment: Environ) -> None:
    """Prints what a job found that somebody must look at: its results are on disk, and a report may be far."""
    from onnx_ci.report import terminal

    told = terminal.render_findings([outcome.result for outcome in outcomes], str(folders.results))
    if told is not None:
        terminal.show(told, sys.stdout, environment)


def calibrate(
    *,
    config: Path | None,
    models: Sequence[str],
    targets: Sequence[str],
    out: Path,
    artifacts: Path | None,
    python: str | None,
    environment: Environ,
) -> ExitCode:
    """Measures how much benign runs err, and writes it beside the config, for review like any other change."""
    loaded = _load(config)
    found = find_artifacts(artifacts or out / "artifacts", models)
    count_legs(found, targets)
    folders = _folders(loaded, out)
    folders.prepare()
    interpreter = find_python(python, environment, job.VERIFY_MODULES)
    legs = []
    with Workers(interpreter, folder=folders.root, environment=environment) as workers:
        for artifact, spec in found:
            for target in (target for target in spec.targets if not targets or target.name in targets):
                legs.append(calibration.perform(artifact, spec, target, workers, folders.logs))
                print("\n".join(calibration.told(legs[-1], spec)), flush=True)
    if any(leg.answer and leg.answer.calibration for leg in legs):
        print(calibration.LEGEND)
    written = calibration.write(loaded, legs)
    if written is not None:
        print(f"{written}: commit it; the next export is judged by it")
    return calibration.exit_code(legs, named=bool(targets))


def golden_accept(*, config: Path | None, models: Sequence[str], out: Path, artifacts: Path | None) -> ExitCode:
    """Stores what the artifacts hold as goldens; the difference is then reviewed like any other change."""
    loaded = _load(config)
    folders = _folders(loaded, out)
    for artifact, spec in find_artifacts(artifacts or out / "artifacts", models):
        name = label(spec.model.name, spec.model.variant)
        written = golden.accept(artifact.folder, folders.golden / name)
        print(f"{name}: {len(written)} files in {folders.golden / name}")
    return ExitCode.PASS


def golden_check(
    *,
    config: Path | None,
    models: Sequence[str],
    out: Path,
    artifacts: Path | None,
    python: str | None,
    environment: Environ,
) -> ExitCode:
    """Compares artifacts with their goldens on the CPU; the results of earlier runs stay as they are."""
    loaded = _load(config)
    found = find_artifacts(artifacts or out / "artifacts", models)
    here = [(artifact, replace(spec, targets=[_GOLDEN_TARGET])) for artifact, spec in found]
    interpreter = find_python(python, environment, job.VERIFY_MODULES)
    with tempfile.TemporaryDirectory(prefix="onnx-ci-") as scratch:
        folders = replace(_folders(loaded, out), out=Path(scratch))
        folders.prepare()
        with (
            progress_for(sys.stderr, environment, len(here)) as progress,
            _judges(interpreter, folders, environment) as workers,
        ):
            outcomes = job.verify_artifacts(here, [], folders, workers, progress)
    for outcome in outcomes:
        name = label(outcome.result.model, outcome.result.variant)
        for entry in outcome.result.findings:
            if entry.stage == "golden" or entry.status == "error":
                print(f"{entry.status:5} {name}: {entry.rule} {entry.subject}: {entry.message}")
    return job.exit_code([_only_golden(outcome) for outcome in outcomes])


_GOLDEN_TARGET = TargetSpec(name="cpu", provider=CPU)


def _only_golden(outcome: job.Outcome) -> job.Outcome:
    judged = [entry for entry in outcome.result.findings if entry.stage == "golden" or entry.status == "error"]
    return replace(outcome, result=replace(outcome.result, status=worst([entry.status for entry in judged])))


def doctor(*, config: Path | None, python: str | None, environment: Environ) -> ExitCode:
    """Says what is there on this machine and what is missing; asks the user's interpreter, and changes nothing."""
    from onnx_ci.scaffold import doctor as checklist

    root = Path.cwd()
    interpreter = _attempt(lambda: _interpreter(python, environment))
    seen = (
        interpreter if isinstance(interpreter, OnnxCiError) else _attempt(lambda: _described(interpreter, environment))
    )
    checks = checklist.examine(_attempt(lambda: _load(config)), seen, root, interpreter=str(interpreter))
    print(checklist.render(checks))
    return checklist.exit_code(checks)


T = TypeVar("T")


def _attempt(step: Callable[[], T]) -> T | OnnxCiError:
    try:
        return step()
    except OnnxCiError as error:
        return error


def _interpreter(python: str | None, environment: Environ) -> Path:
    """The one that `run` would take; where none has all that is needed, the first there is, to say what it lacks."""
    try:
        return find_python(python, environment, job.EXPORT_MODULES)
    except UsageError:
        return find_python(python, environment, ())


def _described(interpreter: Path, environment: Environ) -> Environment:
    with (
        tempfile.TemporaryDirectory(prefix="onnx-ci-") as scratch,
        Workers(interpreter, folder=Path.cwd(), environment=environment) as workers,
    ):
        return environment_of(workers, Path(scratch) / "interpreter.log")


def _load(config: Path | None) -> Config:
    loaded = load(config, cwd=Path.cwd())
    return replace(loaded, lock=lock.read(loaded.lock, Path(loaded.root)))


def _folders(config: Config, out: Path) -> job.Folders:
    root = Path(config.root)
    return job.Folders(root=root, out=out, golden=root / config.golden_dir)


def _say_commit(folders: job.Folders, environment: Environ) -> None:
    """On a runner only: elsewhere a commit says little of the files that were exported."""
    commit = commits.head(folders.root) if environment.get("GITHUB_ACTIONS") == "true" else ""
    write_provenance(folders.artifacts, commit, environment.get("GITHUB_RUN_ID", ""))


def _exporters(interpreter: Path, folders: job.Folders, environment: Environ, models: Sequence[ModelSpec]) -> Workers:
    preload = ["torch", "warm"] if len(models) > 1 else ["torch"]
    return Workers(interpreter, folder=folders.root, environment=environment, preload=preload)


def _judges(interpreter: Path, folders: job.Folders, environment: Environ) -> Workers:
    return Workers(interpreter, folder=folders.root, environment=environment, preload=["verify"])


def _exported(model: ModelSpec, out: Path) -> bool:
    return (out / "artifacts" / label(model.name, model.variant) / "manifest.json").exists()


def _artifact(config: Config, model: ModelSpec, out: Path) -> tuple[Artifact, JobSpec]:
    return Artifact(out / "artifacts" / label(model.name, model.variant)), config.job(model)
