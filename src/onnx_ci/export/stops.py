"""An export that stops: at which step, for what cause, at which line of the user's, and what to try."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from onnx_ci.export import traced
from onnx_ci.export.guardlog import GuardLog
from onnx_ci.export.places import Place, Places, chain
from onnx_ci.records.result import Finding, finding

Step = Literal["eager", "capture", "decomposition", "translation", "tracing", "checker", "save"]
_OPERATOR = re.compile(r"OpOverload\(op='(?P<op>[\w.:]+)', overload='(?P<overload>\w+)'\)|operator '?(?P<old>[\w:]+)'?")
_CONTROL_FLOW = "symbolically traced variables cannot be used as inputs to control flow"
_DATA_DEPENDENT = "GuardOnDataDependentSymNode"
_LONGEST = 300
_SAID = {
    "eager": "the PyTorch module itself raises on the export example",
    "capture": "the export stopped while torch.export captured the module",
    "decomposition": "the export stopped while the captured program was decomposed",
    "translation": "the export stopped while the program was translated to ONNX",
    "tracing": "the export stopped while the older exporter traced the module",
    "checker": "the exported file is refused by ONNX's checker",
    "save": "the export stopped while the file was written",
}


@dataclass(frozen=True, slots=True)
class Stop:
    """What stopped, as `Places` and the exception tell it."""

    step: Step
    cause: str
    operator: str
    place: Place | None


def read(
    error: BaseException,
    step: Step,
    log: GuardLog,
    places: Places,
    captured: torch.export.ExportedProgram | None = None,
) -> Stop:
    """Digs the root cause, the operator and the user's line out of an exception."""
    root = list(chain(error))[-1]
    text = str(error)
    if step == "capture" and any("ConversionError" in type(link).__name__ for link in chain(error)):
        step = "translation"
    if step == "translation" and "decompos" in text.partition("\n")[0].lower():
        step = "decomposition"
    operator = _operator(error)
    # A size comes first: the node that could not be made may be one that only uses it, lines further down.
    node = (_failing_size(error, captured) if captured is not None else None) or _failing_node(error)
    place = places.of_stack_text(node.meta.get("stack_trace") or "") if node is not None else None
    place = place or places.of_error(error) or _last_guard(root, log)
    return Stop(step, _cause(root, operator), operator, place)


def judge(stop: Stop, exporter: str, other_takes_it: Callable[[], bool]) -> Finding:
    """Makes the finding; `other_takes_it` is asked only where another exporter could help."""
    at: dict[str, Any] = {"file": stop.place.file, "line": stop.place.line} if stop.place and stop.place.file else {}
    where = f" at {stop.place.shown}" if stop.place else ""
    return finding(
        "export.stopped",
        "fail",
        stop.operator or stop.step,
        f"{_SAID[stop.step]}{where}: {stop.cause}",
        hint=_hint(stop, exporter, other_takes_it),
        data={"step": stop.step, "operator": stop.operator},
        **at,
    )


def _hint(stop: Stop, exporter: str, other_takes_it: Callable[[], bool]) -> str:
    if stop.step == "eager":
        return "Call the module with the first case by hand: nothing can be exported before it runs."
    hints = []
    if stop.operator:
        hints.append(f"Replace {stop.operator} by operators that ONNX has, or give it a custom_translation_table.")
    elif _CONTROL_FLOW in stop.cause:
        hints.append(
            "A size became a Python number there (round, int, if): compute it with tensors, or fix that dim and export "
            "a variant for each size."
        )
    elif _DATA_DEPENDENT in stop.cause or "data-dependent" in stop.cause:
        hints.append("The branch depends on the data: write it with torch.where or torch.cond.")
    if stop.operator or stop.step == "tracing":  # a branch on data or sizes would only be frozen by the older one
        other = "torchscript" if exporter == "dynamo" else "dynamo"
        if other_takes_it():
            hints.append(
                f"The other exporter takes this model: exporter = {other!r}; its cases are judged all the same."
            )
    return " ".join(hints) or "Reduce the module to the part that fails, and look for the cause in PyTorch's issues."


def _cause(root: BaseException, operator: str) -> str:
    lines = [line.strip() for line in str(root).splitlines() if line.strip()]
    said = lines[0] if lines else ""
    if operator and "No ONNX function found" in said:
        return f"no ONNX translation exists for the operator {operator}"
    said = re.sub(r"(/[\w.+-]+){2,}/", "", said)  # absolute paths say nothing to others
    return f"{type(root).__name__}: {said}"[:_LONGEST] if said else type(root).__name__


def _operator(error: BaseException) -> str:
    for link in reversed(list(chain(error))):
        text = str(link)
        if "No ONNX function found" not in text and "Unsupported" not in text and "not supported" not in text:
            continue
        if match := _OPERATOR.search(text):
            if match["op"]:
                name, overload = match["op"].replace("::", "."), match["overload"]
                return name if overload == "default" else f"{name}.{overload}"
            return match["old"]
    return ""


def _failing_node(error: BaseException) -> torch.fx.Node | None:
    """The FX node that a frame of torch was at work on: a decomposed one, which the captured graph lacks by name."""
    for link in chain(error):
        for frame, _ in traceback.walk_tb(link.__traceback__):
            node = frame.f_locals.get("node")
            if "torch" in frame.f_code.co_filename and isinstance(node, torch.fx.Node) and node.meta.get("stack_trace"):
                return node
    return None


def _failing_size(error: BaseException, captured: torch.export.ExportedProgram) -> torch.fx.Node | None:
    """The node whose size torch could not compute: an expression that a frame of it was at work on."""
    for link in chain(error):
        for frame, _ in traceback.walk_tb(link.__traceback__):
            expression: Any = frame.f_locals.get("expr")  # outermost first, down to the part that failed
            if hasattr(expression, "free_symbols") and expression.args:
                node = traced.node_of(captured, expression)
                if node is not None:
                    return node
    return None


def _last_guard(root: BaseException, log: GuardLog) -> Place | None:
    """torch.fx says nothing of the line when Python asks a traced size for a number: the last guard does."""
    if not isinstance(root, (TypeError, RuntimeError, ValueError)) and "Trace" not in type(root).__name__:
        return None
    for guard in reversed(log.guards):
        if guard.place is not None:
            return guard.place
    return None
