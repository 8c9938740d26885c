"""torch's private names: all that are used stand here, are looked up when they are needed, and have a test each.

See docs/decisions/own-capture.md.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

GUARD_LOGGER = "torch.fx.experimental.symbolic_shapes"
"""Says at INFO each decision on sizes that tracing takes: ``eval s77 <= 4 [guard added] (…)``."""
DYNAMO_LOGGER = "torch._guards"
"""Dumps stacks when a strict capture fails; the error itself is raised."""
REGISTRY_LOGGER = "torch.onnx._internal.exporter._registration"
"""Says at each export that torchvision is not installed."""
_TRANSLATION = ("torch.onnx._internal.exporter._core", "_exported_program_to_onnx_program")
"""What the exporter calls with the program that it has decomposed."""
_STRATEGIES = "torch.onnx._internal.exporter._capture_strategies"


def missing_name() -> str:
    """The first name that own capture needs and this torch lacks; empty when it has all."""
    for find in (_patches, _oblivious, user_error, deferral):
        try:
            find()
        except (ImportError, AttributeError) as error:
            return str(error)
    return ""


@contextlib.contextmanager
def exporter_context(shapes: Any) -> Iterator[None]:
    """What the exporter itself captures in: a batch of one stays dynamic, recurrent layers become loops."""
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


def user_error() -> type[Exception]:
    """What torch raises when declared dims do not hold."""
    return importlib.import_module("torch._dynamo.exc").UserError  # type: ignore[no-any-return]


def deferral() -> dict[str, Any]:
    """The exporter's choice: conditions on several sizes become asserts instead of refusals."""
    name = "prefer_deferred_runtime_asserts_over_guards"
    if name not in inspect.signature(torch.export.export).parameters:
        raise AttributeError(f"torch.export.export has no {name}")
    return {name: True}


@contextlib.contextmanager
def parsed_once() -> Iterator[None]:
    """Inside, onnxscript parses the source of each translation once a process, not once an export: a quarter of one."""
    try:
        owner: Any = importlib.import_module("onnxscript").values.TracedOnnxFunction
        parse = owner.function_ir.fget
    except (ImportError, AttributeError):
        yield
        return

    def function_ir(self: Any) -> Any:
        if self.func not in _PARSED:
            _PARSED[self.func] = parse(self)
        return _PARSED[self.func]

    owner.function_ir = property(function_ir)
    try:
        yield
    finally:
        owner.function_ir = property(parse)


_PARSED: dict[Any, Any] = {}


def compiled_graphs() -> int | None:
    """How many graphs torch.compile has made in this process; None where this torch does not tell."""
    try:
        return int(importlib.import_module("torch._dynamo.utils").counters["stats"]["unique_graphs"])
    except (ImportError, AttributeError, LookupError, TypeError):
        return None


def forget_recurrent_dispatch() -> None:
    """Clears what the dispatcher remembers of gru and lstm: a second capture would freeze their time axis."""
    packets: list[Any] = [torch.ops.aten.gru, torch.ops.aten.lstm]
    for packet in packets:
        for name in packet.overloads():
            cache = getattr(getattr(packet, name), "_dispatch_cache", None)
            if cache is not None:
                cache.clear()


def deferred_asserts(program: torch.export.ExportedProgram) -> list[Any]:
    """Conditions on sizes, as sympy expressions, that the capture assumes and the ONNX file does not check."""
    env = next(iter(_shape_environments(program)), None)
    if env is None:
        return []
    return [known.expr for asserts in getattr(env, "deferred_runtime_asserts", {}).values() for known in asserts]


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a program takes for granted of its sizes.

    Attributes:
        conditions: Guards, deferred asserts and symbols that were found equal to something, as sympy expressions.
        ranges: For each FX symbol its range.
    """

    conditions: tuple[Any, ...] = ()
    ranges: Mapping[Any, Any] = field(default_factory=dict)


def assumptions(program: torch.export.ExportedProgram) -> Assumptions | None:
    """What is assumed of the program's sizes by now; None where this torch does not tell."""
    env = next(iter(_shape_environments(program)), None)
    if env is None:
        return Assumptions()
    try:
        equal = importlib.import_module("sympy").Eq
        replaced = [equal(symbol, value, evaluate=False) for symbol, value in env.replacements.items()]
        guards = [guard.expr for guard in env.guards]
        return Assumptions((*guards, *deferred_asserts(program), *replaced), dict(env.var_to_range))
    except (ImportError, AttributeError):
        return None


@contextlib.contextmanager
def before_translation(look: Callable[[torch.export.ExportedProgram], None]) -> Iterator[None]:
    """Shows each program that is about to be translated, decomposed; a BaseException of `look` ends the export there.

    A torch that lacks the name shows nothing.
    """
    try:
        module: Any = importlib.import_module(_TRANSLATION[0])
        translate = getattr(module, _TRANSLATION[1])
    except (ImportError, AttributeError):
        yield
        return

    def shown(program: torch.export.ExportedProgram, *args: Any, **kwargs: Any) -> Any:
        look(program)
        return translate(program, *args, **kwargs)

    setattr(module, _TRANSLATION[1], shown)
    try:
        yield
    finally:
        setattr(module, _TRANSLATION[1], translate)


def dynamo_frames() -> list[tuple[str, int]]:
    """The frames that dynamo is tracing, in strict mode, where the user's are not on Python's stack."""
    try:
        context = importlib.import_module("torch._guards").TracingContext
        return [(frame.filename, frame.lineno or 1) for frame in context.extract_stack()]
    except (ImportError, AttributeError, RuntimeError):
        return []


def node_stack() -> str:
    """The stack of the node that is being decomposed, where the user's code is long left."""
    try:
        meta = importlib.import_module("torch.fx.traceback").get_current_meta()
    except (ImportError, AttributeError):
        return ""
    return str(meta.get("stack_trace") or "")


def is_torchscript_node(value: object) -> bool:
    """Whether it is a node of TorchScript's graph, which tells its source range and scope."""
    kind = getattr(torch._C, "Node", None)
    return kind is not None and isinstance(value, kind)


def _shape_environments(program: torch.export.ExportedProgram) -> Iterator[Any]:
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            for size in value.shape:
                if isinstance(size, torch.SymInt):
                    yield size.node.shape_env
