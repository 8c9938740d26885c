"""Captures a module as the ONNX exporter does, but refines no declared range in silence.

All private names of torch are in this module, each with a test: see docs/decisions/own-capture.md.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from onnx_ci.export.places import Place, Places
from onnx_ci.export.types import Call

_STRATEGIES = "torch.onnx._internal.exporter._capture_strategies"
_GUARD_LOGGER = "torch.fx.experimental.symbolic_shapes"
_GUARD = re.compile(r"(?:eval|runtime_assert) (?P<text>(?!\[guard suppressed\]).*?) \[guard added\]")
_SYMBOL = re.compile(r"create_symbol (?P<symbol>s\d+) = \S+ for (?P<source>\S+)")
_MOST_REFINEMENTS = 8
Shapes = Any
"""What torch.export takes as dynamic_shapes: a tree of the arguments' form with a Dim an axis."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A decision on sizes that tracing took, and the user's line that asked for it."""

    text: str
    place: Place | None


@dataclass(slots=True)
class GuardLog:
    """What torch said of sizes while it traced.

    Attributes:
        symbols: By FX symbol, the argument's axis that it stands for: ``L['x'].size()[0]``.
        violations: torch's own sentences on declared ranges that do not hold, one list a capture.
    """

    guards: list[Guard] = field(default_factory=list)
    symbols: dict[str, str] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)


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


def capture(module: torch.nn.Module, call: Call, shapes: Shapes, log: GuardLog, places: Places) -> Captured:
    """Captures a module; a declared range that does not hold is refined, and `log.violations` says so.

    Non-strict first and strict second, as the exporter does it; the error of the first is the one raised.

    Raises:
        Exception: Whatever torch or the module raised, unwrapped.
    """
    missing = missing_private_name()
    _forget_recurrent_dispatch()
    with listen(log, places), _quiet():
        if missing:
            return _capture_publicly(module, call, shapes, missing)
        try:
            return _capture_refining(module, call, shapes, log, strict=False)
        except Exception as first:
            said = list(log.violations)
            try:
                return _capture_refining(module, call, shapes, log, strict=True)
            except Exception:
                log.violations[:] = said
                raise first from first.__cause__


def missing_private_name() -> str:
    """The first private name that this torch lacks; empty when own capture works."""
    for find in (_patches, _oblivious, _user_error, _deferral):
        try:
            find()
        except (ImportError, AttributeError) as error:
            return str(error)
    return ""


def symbolic_sizes(program: torch.export.ExportedProgram, placeholder: str) -> list[Any] | None:
    """Each axis of a placeholder as an int or a sympy expression of FX symbols; None if it is no tensor."""
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name == placeholder:
            return sizes_of(node.meta.get("val"))
    return None


def output_sizes(program: torch.export.ExportedProgram) -> list[list[Any] | None]:
    """As `symbolic_sizes`, for each output of the module."""
    kinds = torch.export.graph_signature.OutputKind
    specs = program.graph_signature.output_specs
    (node,) = [node for node in program.graph.nodes if node.op == "output"]
    values = [value.meta.get("val") if isinstance(value, torch.fx.Node) else value for value in node.args[0]]
    return [
        sizes_of(value)
        for spec, value in zip(specs, values, strict=True)
        if spec.kind == kinds.USER_OUTPUT and value is not None
    ]


def sizes_of(value: Any) -> list[Any] | None:
    """The axes of a traced value."""
    if not isinstance(value, torch.Tensor):
        return None
    return [size if isinstance(size, int) else size.node.expr for size in value.shape]


def deferred_asserts(program: torch.export.ExportedProgram) -> list[Any]:
    """Conditions on sizes, as sympy expressions, that the capture assumes and the ONNX file does not check."""
    env = next(iter(_shape_environments(program)), None)
    if env is None:
        return []
    return [known.expr for asserts in env.deferred_runtime_asserts.values() for known in asserts]


def node_of(program: torch.export.ExportedProgram, expression: Any) -> torch.fx.Node | None:
    """The first node of a program in whose size an expression stands."""
    nodes: list[torch.fx.Node] = list(program.graph.nodes)
    for node in nodes:
        value = node.meta.get("val")
        scalar: Any = getattr(value, "node", None)  # of a traced number
        found = sizes_of(value) or ([scalar.expr] if scalar is not None else [])
        if any(size == expression or (hasattr(size, "has") and size.has(expression)) for size in found):
            return node
    return None


def _shape_environments(program: torch.export.ExportedProgram) -> Iterator[Any]:
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            for size in value.shape:
                if isinstance(size, torch.SymInt):
                    yield size.node.shape_env


def _capture_refining(module: torch.nn.Module, call: Call, shapes: Shapes, log: GuardLog, *, strict: bool) -> Captured:
    declared, rounds = shapes, 0
    while True:
        try:
            with _exporter_context(shapes):
                program = torch.export.export(
                    module, call.args, call.kwargs, dynamic_shapes=shapes, strict=strict, **_deferral()
                )
        except _user_error() as error:
            if rounds == _MOST_REFINEMENTS:
                raise
            said = str(error).partition("\nThe error above")[0].strip()
            try:
                refined = _refine(said, shapes, declared)
            except Exception:  # torch has no fix for it, or one of a form it does not support
                raise error from None
            shapes, rounds = refined, rounds + 1
            log.violations.append(said)
            _forget_recurrent_dispatch()
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


@contextlib.contextmanager
def _exporter_context(shapes: Shapes) -> Iterator[None]:
    patch_unsupported, patch_recurrent = _patches()
    with patch_unsupported(), patch_recurrent(shapes), _oblivious()(backed_size_oblivious=True):
        yield


def _patches() -> tuple[Any, Any]:
    strategies = importlib.import_module(_STRATEGIES)
    return strategies._patch_dynamo_unsupported_functions, strategies._patch_dynamic_shape_rnn_decompositions


def _oblivious() -> Any:
    config: Any = importlib.import_module("torch.fx.experimental._config")
    if not hasattr(config, "backed_size_oblivious"):
        raise AttributeError("torch.fx.experimental._config has no backed_size_oblivious")
    return config.patch


def _user_error() -> type[Exception]:
    return importlib.import_module("torch._dynamo.exc").UserError  # type: ignore[no-any-return]


def _deferral() -> dict[str, Any]:
    name = "prefer_deferred_runtime_asserts_over_guards"
    if name not in inspect.signature(torch.export.export).parameters:
        raise AttributeError(f"torch.export.export has no {name}")
    return {name: True}


def _forget_recurrent_dispatch() -> None:
    """Clears what the dispatcher remembers of gru and lstm: a second capture would freeze their time axis."""
    packets: list[Any] = [torch.ops.aten.gru, torch.ops.aten.lstm]
    for packet in packets:
        for name in packet.overloads():
            cache = getattr(getattr(packet, name), "_dispatch_cache", None)
            if cache is not None:
                cache.clear()


@contextlib.contextmanager
def listen(log: GuardLog, places: Places) -> Iterator[None]:
    """Keeps what torch's shape environment logs, and nothing of it on the screen."""
    logger = logging.getLogger(_GUARD_LOGGER)
    before = (logger.level, logger.propagate, list(logger.handlers))
    logger.handlers[:] = [_Listener(log, places)]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.setLevel(before[0])
        logger.propagate = before[1]
        logger.handlers[:] = before[2]


class _Listener(logging.Handler):
    def __init__(self, log: GuardLog, places: Places) -> None:
        super().__init__(logging.INFO)
        self._log = log
        self._places = places

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if made := _SYMBOL.search(text):
            self._log.symbols[made["symbol"]] = made["source"]
        elif guard := _GUARD.search(text):
            place = (
                self._places.of_frame(sys._getframe())
                or self._places.deepest(_dynamo_frames())
                or self._places.of_stack_text(_node_stack())
            )
            self._log.guards.append(Guard(guard["text"], place))


def _dynamo_frames() -> list[tuple[str, int]]:
    """The frames that dynamo is tracing, in strict mode, where the user's are not on Python's stack."""
    try:
        context = importlib.import_module("torch._guards").TracingContext
        return [(frame.filename, frame.lineno or 1) for frame in context.extract_stack()]
    except (ImportError, AttributeError, RuntimeError):
        return []


def _node_stack() -> str:
    """The stack of the node that is being decomposed, where the user's code is long left."""
    try:
        meta = importlib.import_module("torch.fx.traceback").get_current_meta()
    except (ImportError, AttributeError):
        return ""
    return str(meta.get("stack_trace") or "")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the exporter's own warnings and dynamo's stack dumps from the user: we judge what they hint at."""
    logger = logging.getLogger("torch._guards")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
