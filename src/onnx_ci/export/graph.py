"""From a module to a finished graph in memory: captured, translated, named, ordered, its metadata put right."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import onnx_ir as ir
import torch
from torch.export import ExportedProgram

from onnx_ci.errors import OnnxCiError
from onnx_ci.export import (
    canonical,
    capture,
    derived,
    dimtree,
    finish,
    naming,
    private,
    program,
    shapes,
    stops,
)
from onnx_ci.export.capture import Captured
from onnx_ci.export.guardlog import GuardLog, listen
from onnx_ci.export.places import spot
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.records.result import Finding, finding

_NO_ROOM = (errno.ENOSPC, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC))  # Windows has no quotas
Timed = Callable[[str], Any]
"""Enters a stage of the job, as a context manager."""


class SameProgram(BaseException):
    """The program is the known one, and would give its graph; past the exporter, which wraps each Exception."""


def build(subject: Subject, timed: Timed, known: str = "") -> Graph | list[Finding]:
    """Exports in memory; a list of findings says why where that stops.

    Args:
        subject: What is exported.
        timed: Where the stages are timed.
        known: Digest of the program of a graph that is known already; "" for none.

    Raises:
        SameProgram: The program is the known one.
    """
    log = GuardLog()
    step: stops.Step = "tracing" if subject.options.exporter == "torchscript" else "capture"
    captured: Captured | None = None
    seen: list[ExportedProgram] = []

    def look(made: ExportedProgram) -> None:
        if known.startswith("decomposed") and canonical.decomposed(made, _labels(subject)) == known:
            raise SameProgram
        seen.append(made)

    try:
        if subject.options.exporter == "torchscript":
            with timed("capture"):
                model, names = _trace(subject)
            return finish.of_torchscript(subject, model, names)
        with timed("capture"):
            captured = _capture(subject, log)
            if known.startswith("captured") and canonical.captured(captured.program, _labels(subject)) == known:
                raise SameProgram
            reading = shapes.read(captured.program, subject.leaves, subject.declared, log, subject.where)
            found = derived.relations(subject, captured.program, reading)
            if found:
                notes = derived.told(found, reading)
                subject = replace(subject, declared=derived.substituted(subject.declared, found))
                reading = shapes.read(captured.program, subject.leaves, subject.declared, log, subject.where)
                reading.findings[:0] = notes
            assumed = private.assumptions(captured.program)
        step = "translation"
        with timed("translate"):
            symbols = {str(symbol): name for symbol, name in reading.symbols.items()}
            with listen(log, subject.places):  # decomposing assumes more of the sizes
                translated = program.translate(captured, subject.options, symbols, look)
        built = replace(finish.of_capture(subject, captured, translated, reading, log), derived=found)
        if known or not seen or not subject.weights:
            return built  # nobody will ask for its digest
        with timed("digest"):
            return replace(built, program=_program(subject, captured.program, seen[0], assumed))
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:
        return _stopped(subject, error, step, log, captured)


def _stopped(
    subject: Subject, error: Exception, step: stops.Step, log: GuardLog, captured: Captured | None
) -> list[Finding]:
    if isinstance(error, MemoryError) or type(error).__module__.startswith("onnx_ci"):
        raise error
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        raise OnnxCiError(
            f"the exporter has no room to write: {error.strerror}", where=str(error.filename or "")
        ) from error
    stop = stops.read(error, step, log, subject.places, subject.module, captured.program if captured else None)
    findings = [stops.judge(stop, subject.options.exporter)]
    if captured is None and log.violations:
        findings.insert(0, _unrefined(subject, log))
    return findings


def _unrefined(subject: Subject, log: GuardLog) -> Finding:
    place = next((guard.place for guard in log.guards if guard.place), None)
    lines = [line.strip(" -") for line in log.violations[-1].splitlines() if line.strip().startswith("- ")]
    return finding(
        "contract.range",
        "fail",
        "",
        f"the declared dims do not hold: {' '.join(lines) or log.violations[-1]}",
        hint=f"Declare the range that holds under {subject.where}.dims, or change the line that narrows it.",
        **spot(place),
    )


def _program(
    subject: Subject, captured: ExportedProgram, made: ExportedProgram, assumed: private.Assumptions | None
) -> str:
    """The digest to compare another export by: of the captured program, if decomposing it assumed nothing new."""
    if assumed is not None and assumed == private.assumptions(captured):
        return canonical.captured(captured, _labels(subject))
    return canonical.decomposed(made, _labels(subject))


def _labels(subject: Subject) -> list[str]:
    """What names and orders the edges of the graph, beside the program itself."""
    return [*(leaf.path for leaf in subject.tensors), "", *subject.eager.keys]


def _capture(subject: Subject, log: GuardLog) -> Captured:
    given = None if subject.spec.fixed else subject.options.dynamic_shapes  # they know nothing of what a variant fixes
    tree = (
        dimtree.shapes_from_user(given, subject.declared)
        if given is not None
        else dimtree.shapes_from_declared(subject.module, subject.call, subject.leaves, subject.declared)
    )
    return capture.capture(subject.module, subject.call, tree, log, subject.places)


def _trace(subject: Subject) -> tuple[ir.Model, list[str]]:
    by_path = {item.path: item for item in subject.declared.inputs}
    named = naming.inputs_by_position(subject.tensors, subject.options.input_names, range(len(subject.tensors)))
    items = [by_path.get(leaf.path) for leaf in subject.tensors]
    given = None if subject.spec.fixed else subject.options.dynamic_axes
    axes = given or dimtree.torchscript_axes(named.names, items)
    return program.torchscript(subject.module, subject.call, subject.options, named.names, axes), named.names
