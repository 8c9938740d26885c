"""What more can be told of an export that stopped, in a worker of its own: a crash here costs no finding.

See docs/decisions/exports-that-stop.md.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from onnx_ci.artifact.machine import peak_bytes
from onnx_ci.export import graph, private, repro, smallest, stops
from onnx_ci.export.clock import Stages
from onnx_ci.export.guardlog import GuardLog
from onnx_ci.export.loading import Loaded, load
from onnx_ci.export.options import Options
from onnx_ci.export.quiet import quiet
from onnx_ci.export.smallest import Part, Search, Wanted
from onnx_ci.export.state import answer, preserved
from onnx_ci.export.stops import Stop
from onnx_ci.export.subject import Graph
from onnx_ci.records.messages import DiagnoseRequest, Diagnosis
from onnx_ci.records.result import StageCost


def diagnose(request: DiagnoseRequest, progress: Callable[[str], None]) -> Diagnosis:
    """Answers one question on an export that stopped.

    Raises:
        OnnxCiError: Nothing could be told: the user's code raised this time.
    """
    start = time.monotonic()
    given = load(request.job.model, Path(request.root))
    if request.ask == "part":
        answer = _part(request, given, lambda: time.monotonic() - start < request.seconds, progress)
    else:
        answer = _other(given, progress)
    return replace(answer, cost=StageCost(seconds=round(time.monotonic() - start, 4), peak_bytes=peak_bytes()))


def _part(
    request: DiagnoseRequest, given: Loaded, time_left: Callable[[], bool], progress: Callable[[str], None]
) -> Diagnosis:
    wanted = Wanted(request.step, request.kind, request.operator)
    search = Search(given, wanted, time_left, lambda name: progress(f"export of {name}"))
    found = search.smallest(given.call(given.example), request.module)
    axes, reported, stop = search.axes_of(found), False, None
    if given.options.exporter == "dynamo" and time_left():
        progress("the exporter's own report")
        stop, reported = _publicly(found, axes, given, Path(request.report) if request.report else None)
    elif time_left():
        stop = smallest.stop_of(found, axes, given.options, given.places, request.step)
    return Diagnosis(
        cost=StageCost(seconds=0.0),
        part=found.name,
        type=type(found.module).__name__,
        exports=search.exports,
        ended=search.ended,
        reported=reported,
        shown=bool(request.repro) and wanted.fits(stop) and _shown(request, found, axes, given),
    )


def _shown(request: DiagnoseRequest, part: Part, axes: list[list[int]] | None, given: Loaded) -> bool:
    """Writes a script that shows it."""
    try:
        repro.write(Path(request.repro), part, axes, given, root=Path(request.root), title=request.title)
    except repro.NotWritten as error:
        print(f"no script shows this part alone: {error}")
        return False
    return True


def _publicly(part: Part, axes: list[list[int]] | None, given: Loaded, target: Path | None) -> tuple[Stop | None, bool]:
    """Exports a part by torch's own call: how that stops, and whether the exporter's report on it was written."""
    options, stop = given.options, None
    shapes = smallest.dynamic_shapes(part.module, part.call, axes)
    with (
        tempfile.TemporaryDirectory(prefix="onnx-ci-") as folder,
        quiet(private.REGISTRY_LOGGER, logging.ERROR),
        preserved(part.module),
    ):
        try:
            torch.onnx.export(
                part.module, part.call.args, kwargs=part.call.kwargs, dynamic_shapes=shapes, dynamo=True,
                verbose=False, report=True, artifacts_dir=folder, opset_version=options.opset, **options.handed_on,
            )  # fmt: skip
        except Exception as error:  # that is what is reported
            stop = stops.read(error, "capture", GuardLog(), given.places, part.module)
        written = sorted(Path(folder).glob("*.md")) if target is not None else []
        if written and target is not None:
            shutil.copyfile(written[-1], target)
    return stop, bool(written)


def _other(given: Loaded, progress: Callable[[str], None]) -> Diagnosis:
    """Exports the module with the other exporter, its dims as they are declared."""
    name = "torchscript" if given.options.exporter == "dynamo" else "dynamo"
    eager = answer(given.loaded.module, given.call(given.example))
    subject = replace(given.subject(given.example, eager), options=Options(name, None, None))
    built = graph.build(subject, Stages(progress))
    said = "" if isinstance(built, Graph) else built[-1].message
    return Diagnosis(cost=StageCost(seconds=0.0), takes=isinstance(built, Graph), said=said)
