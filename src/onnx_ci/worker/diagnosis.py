"""An export that stopped, asked about again: its smallest part, the other exporter; the answers join the finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from onnx_ci.records import codec
from onnx_ci.records.messages import DiagnoseRequest, Diagnosis, Event, ExportRequest, Request
from onnx_ci.records.result import Finding, Result, StageCost
from onnx_ci.worker import answers
from onnx_ci.worker.launch import Workers

STAGE = "diagnosis"
SCRIPT = "repro_export.py"
_RULE = "export.stopped"
_DIAGNOSIS = TypeAdapter(Diagnosis)
_TIMES = 2.0
_AT_LEAST = 60.0
"""Seconds: a diagnosis takes no longer than twice the export that stopped, or this where that is longer."""
_OTHER = {"dynamo": "torchscript", "torchscript": "dynamo"}


def diagnosed(
    result: Result,
    first: ExportRequest,
    request: Request,
    spent: float,
    workers: Workers,
    progress: Callable[[str], None],
    clock: Callable[[], float],
) -> Result:
    """Adds to an export that stopped what more can be told of it; any other result is left as it is.

    Each question is put to a worker of its own, so that a crash costs that answer only.

    Args:
        result: Of the export.
        first: What it was asked for.
        request: The same as a message: log and limits are taken from it.
        spent: Seconds that it took.
        workers: Where to ask.
        progress: Told of the stage as it begins.
        clock: Seconds.
    """
    found = next((one for one in result.findings if one.rule == _RULE and one.status == "fail"), None)
    budget = min(max(_TIMES * spent, _AT_LEAST), request.time_limit - spent)
    if found is None or found.data.get("step") == "eager" or budget <= 0:
        return result
    progress(STAGE)
    start = clock()
    asker = _Asker(first, request, workers, found, Path(request.log).with_suffix(".exporter.md"))
    asker.report.unlink(missing_ok=True)
    told = _with_part(found, asker.ask("part", budget), asker)
    left = budget - (clock() - start)
    if left > 0:
        told = _with_other(told, asker.ask("other exporter", left))
    cost = StageCost(seconds=round(clock() - start, 4))
    return replace(
        result,
        findings=[told if one is found else one for one in result.findings],
        stages={**result.stages, STAGE: cost},
    )


@dataclass(frozen=True, slots=True)
class _Asker:
    first: ExportRequest
    request: Request
    workers: Workers
    found: Finding
    report: Path

    @property
    def repro(self) -> Path | None:
        """The folder for a script that shows the failure alone; removed with the others when an export begins."""
        return Path(self.first.repro) if self.first.repro else None

    def ask(self, what: Literal["part", "other exporter"], seconds: float) -> Diagnosis | str:
        """The answer, or why there is none."""
        known = {key: str(self.found.data.get(key) or "") for key in ("step", "kind", "operator", "module")}
        asked = DiagnoseRequest(
            job=self.first.job,
            root=self.first.root,
            ask=what,
            seconds=0.7 * seconds,  # what has begun by then may end in time
            report=str(self.report),
            repro=str(self.repro or ""),
            title=self.found.message,
            **known,
        )
        message = replace(
            self.request, id=self.workers.next_id(), verb="diagnose", time_limit=seconds, payload=codec.encode(asked)
        )
        stages = [""]
        return _answer(self.workers.perform(message, stages.append), stages)


def _answer(event: Event, stages: list[str]) -> Diagnosis | str:
    answer = answers.read(_DIAGNOSIS, event)
    during = f" during {stages[-1]}" if stages[-1] and event.kind != "result" and not event.where else ""
    return f"{answer}{during}" if isinstance(answer, str) else answer


def _with_part(found: Finding, answer: Diagnosis | str, asker: _Asker) -> Finding:
    if isinstance(answer, str):
        return _more(found, f"The part that fails could not be looked for: {answer}.", {})
    data: dict[str, Any] = {"smallest": answer.part, "type": answer.type, "exports": answer.exports}
    message, hints = found.message, []
    if answer.part:
        message += f"; the smallest part that still fails is {answer.part} ({answer.type})"
    if answer.ended:
        hints.append(f"There may be a smaller part: {answer.ended}.")
        data["ended"] = answer.ended
    if answer.reported:
        hints.append(f"The exporter's own report is logs/{asker.report.name}.")
        data["report"] = f"logs/{asker.report.name}"
    if answer.shown and asker.repro is not None:
        data["repro"] = "/".join(asker.repro.parts[-2:])
        hints.append(f"{data['repro']}/{SCRIPT} shows it alone, with torch and the model's own code.")
    return _more(replace(found, message=message), " ".join(hints), data)


def _with_other(found: Finding, answer: Diagnosis | str) -> Finding:
    other = _OTHER.get(str(found.data.get("exporter")), "")
    if isinstance(answer, str):
        return _more(found, f"Whether the other exporter takes it could not be told: {answer}.", {})
    data = {"other_exporter": other, "other_takes": answer.takes, "other_said": answer.said}
    if not answer.takes:
        return _more(found, f"The other exporter ({other}) stops too.", data)
    if found.data.get("freezes") and other == "torchscript":
        hint = "The older exporter writes a file, but keeps in it what the example did there: that is no way out."
    else:
        hint = f"The other exporter takes this model: exporter = '{other}'; its cases are judged all the same."
    return _more(found, hint, data)


def _more(found: Finding, hint: str, data: dict[str, Any]) -> Finding:
    return replace(found, hint=" ".join(part for part in (found.hint, hint) if part), data={**found.data, **data})
