"""Calibration as the tool sees it: a request to a worker for each leg, and what is then written and said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from onnx_ci.artifact.layout import Artifact
from onnx_ci.config import calibration
from onnx_ci.errors import ExitCode
from onnx_ci.records import codec
from onnx_ci.records.calibration import SCHEMA_VERSION, Calibration, CalibrationFile
from onnx_ci.records.messages import Calibrated, CalibrateRequest, Event, Request
from onnx_ci.records.model import Config, JobSpec, TargetSpec
from onnx_ci.records.result import label
from onnx_ci.worker import answers
from onnx_ci.worker.files import write_text
from onnx_ci.worker.launch import Workers

LEGEND = (
    "A ratio is the runtime's error over PyTorch's own in the same dtype, both against PyTorch in float64: the largest "
    "of all runs and cases. 0: no run errs more than passes whatever the budget. A budget is twice the ratio, at least "
    "the config's."
)
_CALIBRATED = TypeAdapter(Calibrated)


@dataclass(frozen=True, kw_only=True, slots=True)
class Leg:
    """A model on a target and what came of it; `problem` says why nothing is known."""

    model: str
    target: str
    answer: Calibrated | None
    problem: str = ""


def perform(artifact: Artifact, job: JobSpec, target: TargetSpec, workers: Workers, logs: Path) -> Leg:
    """Calibrates one artifact on one target."""
    name = label(job.model.name, job.model.variant)
    log = logs / f"{name}.{target.name}.calibrate.log"
    log.unlink(missing_ok=True)
    request = Request(
        id=workers.next_id(),
        verb="calibrate",
        log=str(log.resolve()),
        time_limit=job.model.time_limit,
        memory_limit=job.model.memory_limit,
        payload=codec.encode(CalibrateRequest(artifact=str(artifact.folder.resolve()), target=target, job=job)),
    )
    answer = _answer(workers.perform(request, lambda _: None))
    if isinstance(answer, str):
        return Leg(model=name, target=target.name, answer=None, problem=answer)
    return Leg(model=name, target=target.name, answer=answer)


def _answer(event: Event) -> Calibrated | str:
    if event.kind != "result":
        fault = "a fault in onnx-ci" if event.internal else ""
        return ": ".join(filter(None, (fault, event.where, event.message))) or "the worker gave no result"
    return answers.read(_CALIBRATED, event)


def write(config: Config, legs: Sequence[Leg]) -> Path | None:
    """Puts what was found in place of what the file had of these legs; what the config has no more goes.

    Returns:
        The file; None where there is nothing new to write.
    """
    found = {(leg.model, leg.target): leg.answer.calibration for leg in legs if leg.answer and leg.answer.calibration}
    if not found:
        return None
    root = Path(config.root)
    models: dict[str, dict[str, Calibration]] = {}
    targets = {target.name for target in config.targets}
    for name in (label(model.name, model.variant) for model in config.models):
        kept = {key: one for key, one in calibration.read(root).models.get(name, {}).items() if key in targets}
        made = {target: one for (model, target), one in found.items() if model == name}
        if kept or made:
            models[name] = kept | made
    path = root / calibration.NAME
    write_text(path, codec.dumps(CalibrationFile(schema_version=SCHEMA_VERSION, models=models)))
    return path


def told(leg: Leg, job: JobSpec) -> list[str]:
    """What came of a leg, a line each."""
    where = f"{leg.model} on {leg.target}"
    if leg.answer is None:
        return [f"{where}: could not tell: {leg.problem}"]
    if leg.answer.calibration is None:
        return [f"{where}: not calibrated: {leg.answer.absent}"]
    spec = replace(job.model.parity, calibration=leg.answer.calibration)
    lines = [
        f"{where}: {output}: largest ratio {seen:.3g}, budget {spec.budget_of(output):.3g}"
        for output, seen in leg.answer.calibration.observed.items()
    ]
    lines += [
        f"{where}: {output or 'all outputs'}: refused, since {'it is' if output else 'the model is'} wrong: {why}"
        for output, why in sorted(leg.answer.refused.items())
    ]
    return lines or [f"{where}: no output is judged by a budget"]


def exit_code(legs: Sequence[Leg], *, named: bool) -> ExitCode:
    """3 where nothing is known of a leg, or of a target that was `named`; 1 where an output was refused."""
    absent = [leg for leg in legs if leg.answer is not None and leg.answer.absent]
    if any(leg.answer is None for leg in legs) or len(absent) == len(legs) or (named and absent):
        return ExitCode.UNKNOWN
    return ExitCode.BROKEN if any(leg.answer and leg.answer.refused for leg in legs) else ExitCode.PASS
