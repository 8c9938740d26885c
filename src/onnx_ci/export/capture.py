"""Captures a module as the ONNX exporter does, but refines no declared range in silence.

See docs/decisions/own-capture.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from onnx_ci.export import private
from onnx_ci.export.guardlog import GuardLog, listen
from onnx_ci.export.places import Places
from onnx_ci.export.quiet import quiet
from onnx_ci.export.types import Call

_MOST_REFINEMENTS = 8
_NO_ADVICE = "Cannot create Dim"
Shapes = Any
"""What torch.export takes as dynamic_shapes: a tree of the arguments' form with a Dim an axis."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A program and how it was come by.

    Attributes:
        program: Before decomposition; after it when the public call had to do.
        strategy: "own", "own+refined" or "public".
        onnx_program: Only from the public call, which translates at once.
        missing: The private name that was gone, when the public call had to do.
    """

    program: torch.export.ExportedProgram
    strategy: str
    strict: bool
    onnx_program: Any = None
    missing: str = ""


def capture(
    module: torch.nn.Module,
    call: Call,
    shapes: Shapes,
    log: GuardLog,
    places: Places,
    missing: Callable[[], str] = private.missing_name,
) -> Captured:
    """Captures a module; a declared range that does not hold is refined, and `log.violations` says so.

    Non-strict first and strict second, as the exporter does it; the error of the first is the one raised.

    Raises:
        Exception: Whatever torch or the module raised, unwrapped.
    """
    gone = missing()
    private.forget_recurrent_dispatch()
    with listen(log, places), quiet(private.DYNAMO_LOGGER, logging.CRITICAL):
        if gone:
            return _capture_publicly(module, call, shapes, gone)
        try:
            return _capture_refining(module, call, shapes, log, strict=False)
        except Exception as first:
            said = list(log.violations)
            try:
                return _capture_refining(module, call, shapes, log, strict=True)
            except Exception:
                log.violations[:] = said
                raise first from first.__cause__


def _capture_refining(module: torch.nn.Module, call: Call, shapes: Shapes, log: GuardLog, *, strict: bool) -> Captured:
    declared, rounds = shapes, 0
    while True:
        try:
            with private.exporter_context(shapes):
                program = torch.export.export(
                    module, call.args, call.kwargs, dynamic_shapes=shapes, strict=strict, **private.deferral()
                )
        except private.user_error() as error:
            if rounds == _MOST_REFINEMENTS:
                raise
            said = str(error).partition("\nThe error above")[0].strip()
            try:
                refined = _refine(said, shapes, declared)
            except Exception:  # torch has no fix for it, or one of a form it does not support
                raise error from None
            shapes, rounds = refined, rounds + 1
            log.violations.append(said)
            private.forget_recurrent_dispatch()
        except AssertionError as error:
            # torch trips over its own advice where sizes are padded to a multiple and viewed; of hints it gives none
            if not str(error).startswith(_NO_ADVICE) or (hinted := _map_dims(_hint, shapes)) == shapes:
                raise
            shapes = hinted
            private.forget_recurrent_dispatch()
        else:
            return Captured(program, "own+refined" if rounds else "own", strict)


def _capture_publicly(module: torch.nn.Module, call: Call, shapes: Shapes, missing: str) -> Captured:
    args = (*call.args, {}) if call.args and isinstance(call.args[-1], dict) and not call.kwargs else call.args
    done = torch.onnx.export(
        module, args, kwargs=call.kwargs, dynamic_shapes=shapes, dynamo=True, optimize=False, verbose=False
    )
    if done is None or done.exported_program is None:
        raise RuntimeError("torch.onnx.export gave no program")
    return Captured(done.exported_program, "public", strict=False, onnx_program=done, missing=missing)


def _refine(message: str, shapes: Shapes, declared: Shapes) -> Shapes:
    """Applies torch's suggested fixes, but never beyond what was declared: its own fix drops the untouched bound."""
    bounds = {dim.__name__: (dim.min, dim.max) for dim in _dims(declared)}
    made: dict[str, torch.export.Dim] = {}

    def within(dim: Any) -> Any:
        if type(dim) is not torch.export.Dim or dim.__name__ not in bounds:
            return dim
        least, most = bounds[dim.__name__]
        return made.setdefault(
            dim.__name__, torch.export.Dim(dim.__name__, min=max(least, dim.min), max=_finite(min(most, dim.max)))
        )

    return _map_dims(within, torch.export.dynamic_shapes.refine_dynamic_shapes_from_suggested_fixes(message, shapes))


def _hint(dim: Any) -> Any:
    """The same range as a hint instead of a promise: torch then looks for no better name of it."""
    if type(dim) is not torch.export.Dim:
        return dim
    return torch.export.Dim.DYNAMIC(min=_finite(dim.min), max=_finite(dim.max))


def _dims(shapes: Shapes) -> list[Any]:
    found: list[Any] = []

    def note(dim: Any) -> Any:
        root = getattr(dim, "root", dim)  # 2*h is derived from h
        if type(root) is torch.export.Dim:
            found.append(root)
        return dim

    _map_dims(note, shapes)
    return found


def _map_dims(change: Callable[[Any], Any], tree: Shapes) -> Shapes:
    if isinstance(tree, dict):
        return {key: _map_dims(change, item) for key, item in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)([_map_dims(change, item) for item in tree])
    return change(tree)


def _finite(bound: Any) -> int | None:
    """An upper bound as Dim's constructor takes it."""
    return bound if isinstance(bound, int) else None
