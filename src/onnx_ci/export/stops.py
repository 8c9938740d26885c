"""An export that stops: at which step, for what cause, at which line of the user's, and what to try."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from onnx_ci.export import causes, private, traced
from onnx_ci.export.causes import Known
from onnx_ci.export.guardlog import GuardLog
from onnx_ci.export.places import Place, Places, chain, spot
from onnx_ci.records.result import Finding, finding

Step = Literal["eager", "capture", "decomposition", "translation", "tracing"]
RULE = "export.stopped"
_OPERATOR = re.compile(
    r"OpOverload\(op='(?P<op>[\w.:]+)', overload='(?P<overload>\w+)'\)|<built-in function (?P<built>\w+)>"
    r"|operator '(?P<old>[\w:]+)'|export of operator (?P<bare>\w+)|namespace (?P<custom>\w+::\w+)"
)
_NO_OPERATOR = ("No ONNX function found", "Unsupported", "not supported", "unrecognized namespace")
_LONGEST = 300
_SAID = {
    "eager": "the PyTorch module itself raises on the export example",
    "capture": "the export stopped while torch.export captured the module",
    "decomposition": "the export stopped while the captured program was decomposed",
    "translation": "the export stopped while the program was translated to ONNX",
    "tracing": "the export stopped while the older exporter traced the module",
}
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_FOLDERS = re.compile(r"(?<![:/\w])(?:[A-Za-z]:)?(?:[/\\][\w.+-]+){2,}[/\\]")
_BOILERPLATE = re.compile(
    r"\s*(?:This is step \d|See the stack trace|\(unhinted: |\(Size-like |Please feel free|Please file|See https?:|"
    r"For more information, run|If you're using torch|\(Refer to).*"
)


@dataclass(frozen=True, slots=True)
class Stop:
    """What stopped, as `Places` and the exception tell it.

    Attributes:
        said: The root cause in its own words, "Type: text".
        known: What of the catalogue it is, if it is any of it.
        chain: All exceptions in a line each, the outermost first.
        module: Path of the submodule that was at work; "" for the module itself, or where it can't be told.
    """

    step: Step
    said: str
    operator: str = ""
    place: Place | None = None
    known: Known | None = None
    chain: list[str] = field(default_factory=list)
    module: str = ""

    @property
    def kind(self) -> str:
        """What it has in common with another stop of the same cause."""
        return self.known.name if self.known else self.said.partition(":")[0]


def read(
    error: BaseException,
    step: Step,
    log: GuardLog,
    places: Places,
    module: torch.nn.Module,
    captured: torch.export.ExportedProgram | None = None,
) -> Stop:
    """Digs the root cause, the operator, the submodule and the user's line out of an exception."""
    links = list(chain(error))
    if step == "capture" and any("ConversionError" in type(link).__name__ for link in links):
        step = "translation"
    if step == "translation" and "decompos" in str(error).partition("\n")[0].lower():
        step = "decomposition"
    operator = _operator(links)
    # A size comes first: the node that could not be made may be one that only uses it, lines further down.
    node = (_failing_size(error, captured) if captured is not None else None) or _failing_node(error)
    of_torchscript = _failing_traced(error)
    place = places.of_stack_text(node.meta.get("stack_trace") or "") if node is not None else None
    if place is None and of_torchscript is not None:
        place = places.of_traced_text(of_torchscript[0])
    place = place or places.of_error(error) or _last_guard(links[-1], log)
    part = _module_of(node, of_torchscript, error, module)
    text = "\n".join(f"{type(link).__name__}: {link}" for link in reversed(links))
    if isinstance(module.get_submodule(part), torch.jit.ScriptModule):
        text += "\nScriptModule"  # torch's own words do not tell
    return Stop(
        step=step,
        said=_words(links[-1]),
        operator=operator,
        place=place,
        known=causes.find(text, operator, "torchscript" if step == "tracing" else "dynamo"),
        chain=list(dict.fromkeys(map(_words, links))),
        module=part,
    )


def judge(stop: Stop, exporter: str) -> Finding:
    """Makes the finding."""
    where = f" at {stop.place.shown}" if stop.place else ""
    inside = f" in {stop.module}" if stop.module else ""
    why = stop.said if stop.known is None else stop.known.says
    if stop.known is not None and not stop.known.whole:
        why += f" ({stop.said})"
    known: dict[str, Any] = {"cause": stop.known.name, "freezes": stop.known.freezes} if stop.known else {}
    data = {"step": stop.step, "operator": stop.operator, "exporter": exporter, "kind": stop.kind, **known}
    return finding(
        RULE,
        "fail",
        stop.operator or stop.step,
        f"{_SAID[stop.step]}{inside}{where}: {why}",
        hint=_hint(stop),
        data={**data, "module": stop.module, "chain": stop.chain},
        **spot(stop.place),
    )


def _hint(stop: Stop) -> str:
    if stop.step == "eager":
        return "Call the module with the first case by hand: nothing can be exported before it runs."
    return stop.known.advice if stop.known else "Look for the cause, as it is worded here, in PyTorch's issues."


def _words(error: BaseException) -> str:
    """An exception in one line, without colours, folders and what torch says to everybody."""
    text = _BOILERPLATE.sub("", _ANSI.sub("", str(error)).strip().partition("\n")[0])
    text = _FOLDERS.sub("", text).rstrip(" .")  # absolute paths say nothing to others
    name = type(error).__name__
    return f"{name}: {text}"[:_LONGEST] if text else name


def _operator(links: list[BaseException]) -> str:
    for link in reversed(links):
        text = str(link)
        match = _OPERATOR.search(text) if any(sign in text for sign in _NO_OPERATOR) else None
        if match and match["op"]:
            name, overload = match["op"].replace("::", "."), match["overload"]
            return name if overload == "default" else f"{name}.{overload}"
        if match:
            return match["old"] or match["bare"] or match["custom"] or match["built"]
    return ""


def _frames(error: BaseException, *, torchs_own: bool = True) -> Iterator[dict[str, Any]]:
    """The local variables of each frame, outermost first, link by link."""
    for link in chain(error):
        for frame, _ in traceback.walk_tb(link.__traceback__):
            if not torchs_own or "torch" in frame.f_code.co_filename:
                yield frame.f_locals


def _failing_node(error: BaseException) -> torch.fx.Node | None:
    """The FX node that a frame of torch was at work on: a decomposed one, which the captured graph lacks by name."""
    for names in _frames(error):
        node = names.get("node")
        if isinstance(node, torch.fx.Node) and node.meta.get("stack_trace"):
            return node
    return None


def _failing_traced(error: BaseException) -> tuple[str, str] | None:
    """The stack (innermost frame first) and the scope of the TorchScript node that the older exporter was at."""
    for names in _frames(error):
        node: Any = names.get("node")
        if private.is_torchscript_node(node):
            return str(node.sourceRange()), str(node.scopeName())
    return None


def _failing_size(error: BaseException, captured: torch.export.ExportedProgram) -> torch.fx.Node | None:
    """The node whose size torch could not compute: an expression that a frame of it was at work on."""
    for names in _frames(error, torchs_own=False):
        expression: Any = names.get("expr")  # outermost first, down to the part that failed
        if hasattr(expression, "free_symbols") and expression.args:
            node = traced.node_of(captured, expression)
            if node is not None:
                return node
    return None


def _module_of(
    node: torch.fx.Node | None, of_torchscript: tuple[str, str] | None, error: BaseException, module: torch.nn.Module
) -> str:
    """The path of the innermost submodule that was at work; the module itself is ""."""
    paths = {name for name, _ in module.named_modules()}
    if node is not None:
        stack = [str(path).replace("L['self'].", "") for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
        return next((path for path in reversed(stack) if path in paths), "")
    if of_torchscript is not None:
        return _path_of_scope(of_torchscript[1], paths)
    known = {id(part): name for name, part in module.named_modules()}
    held = [id(names.get("self")) for names in _frames(error, torchs_own=False)]
    return next((known[one] for one in reversed(held) if one in known), "")


def _path_of_scope(scope: str, paths: set[str]) -> str:
    """The path in ``pkg.Model::/pkg.Encoder::encoder/…``, whose names are relative, or whole inside a Sequential."""
    path = ""
    for name in [part.rpartition("::")[2] for part in scope.split("/")]:
        path = name if path and name.startswith(f"{path}.") else ".".join(part for part in (path, name) if part)
    return path if path in paths else ""


def _last_guard(root: BaseException, log: GuardLog) -> Place | None:
    """torch.fx says nothing of the line when Python asks a traced size for a number: the last guard does."""
    if not isinstance(root, (TypeError, RuntimeError, ValueError)) and "Trace" not in type(root).__name__:
        return None
    for guard in reversed(log.guards):
        if guard.place is not None:
            return guard.place
    return None
