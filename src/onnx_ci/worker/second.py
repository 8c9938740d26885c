"""The second export as the tool sees it: whether there is one, in what time, and how its findings join the first's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from onnx_ci.artifact.layout import Artifact, ArtifactError
from onnx_ci.records import codec
from onnx_ci.records.messages import ExportRequest, Reexported, ReexportRequest, Request
from onnx_ci.records.result import Finding, Result, StageCost, finding, worst
from onnx_ci.worker import answers
from onnx_ci.worker.launch import Workers

STAGE = "second export"
_RULE = "contract.second-export"
_REEXPORTED = TypeAdapter(Reexported)
_REPEATED = ("entrypoint", "capture", "translate")
_MORE = 1.5
"""How much longer the repeated stages may take at a larger example; an estimate, the limit itself is held."""


def second_export(
    result: Result,
    first: ExportRequest,
    request: Request,
    spent: float,
    workers: Workers,
    progress: Callable[[str], None],
    clock: Callable[[], float],
) -> Result:
    """Exports the model again at another example, in a worker of its own, within what `time_limit` leaves.

    What keeps the second export from its end is a warning: the first one stands, but it is not known to hold elsewhere.

    Args:
        result: Of the first export.
        first: What it was asked for.
        request: The same as a message: log and limits are taken from it.
        spent: Seconds that it took.
        workers: Where to run it.
        progress: Told of each stage as it begins.
        clock: Seconds.
    """
    if result.artifact is None and result.status == "error":
        return result  # there is no export to be told of
    why_not = _why_not(result, Path(first.artifact))
    left = request.time_limit - spent
    expected = _MORE * sum(result.stages[name].seconds for name in _REPEATED if name in result.stages)
    if not why_not and expected > left:
        why_not = f"it would take about {expected:.0f} s, and {max(left, 0):.0f} s of time_limit are left"
    if why_not:
        return _with(result, [finding(_RULE, "skip", "", why_not)])
    asked = ReexportRequest(job=first.job, root=first.root, artifact=first.artifact, **_digests(result))
    message = replace(request, id=workers.next_id(), verb="reexport", time_limit=left, payload=codec.encode(asked))
    progress(STAGE)
    start = clock()
    event = workers.perform(message, lambda _: None)
    seconds = clock() - start
    told = answers.read(_REEXPORTED, event)
    if isinstance(told, Reexported):
        return _with(result, told.findings, replace(told.cost, seconds=round(seconds, 4)))
    said = f"nothing is known of an export at another example: {told}"
    hint = "The log has what it printed. The artifact is that of the first export, and is judged as ever."
    return _with(result, [finding(_RULE, "warn", "", said, hint=hint)], StageCost(seconds=round(seconds, 4)))


def _why_not(result: Result, folder: Path) -> str:
    if result.artifact is None:
        return "the export gave no artifact"
    try:
        contract = Artifact(folder).contract()
    except ArtifactError as error:
        return f"the contract can't be read: {error}"
    return "" if contract.dims else "no dim varies: the export has no other example"


def _digests(result: Result) -> dict[str, str]:
    """What the first export says of the module's state and of the program that it captured."""
    data = next((one.data for one in result.findings if one.rule == "export.exported"), {})
    return {name: found for name in ("weights", "program") if isinstance(found := data.get(name), str)}


def _with(result: Result, found: Sequence[Finding], cost: StageCost | None = None) -> Result:
    return replace(
        result,
        findings=[*result.findings, *found],
        status=worst([result.status, *(one.status for one in found)]),
        stages={**result.stages, STAGE: cost} if cost else result.stages,
    )
