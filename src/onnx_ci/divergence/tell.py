"""Says where a graph first goes wrong, as a finding on the line of code that made the node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import onnx

from onnx_ci.divergence.dataflow import Dataflow
from onnx_ci.divergence.locate import Located
from onnx_ci.numerics.divergence import values_text
from onnx_ci.records.result import Finding, Status, finding
from onnx_ci.records.source_map import Origin, SourceMap

RULE = "parity.divergence"
Rung = Literal["capture", "translation", "optimizer", "runtime", "provider"]
_FAULT: dict[Rung, str] = {
    "capture": "the captured program already differs from the module, so capture is at fault",
    "translation": "the translation is at fault",
    "optimizer": "the exporter's optimizer is at fault{which}: without it the file is right",
    "runtime": "an optimization of ONNX Runtime is at fault{which}: without it the file is right",
    "provider": "the provider is at fault: on the CPU the file is right",
}
_SHOWN = "{shown}"
_HINTS: dict[Rung, str] = {
    "capture": "See the contract findings for a branch or a size that capture took from the example. If there is none: "
    "does forward ask whether it is being exported, or keep what an earlier call left?",
    "translation": "Write this line with other operators, and report it to PyTorch{shown}.",
    "optimizer": "Export without it (export.optimize = false), and report it to onnxscript{shown}.",
    "runtime": "Switch it off in the session (disabled_optimizers), and report it{shown}.",
    "provider": "Compare the provider's precision options, and report it{shown}.",
}
_REMOVED = (
    "Take a larger constant, or torch.clamp(..., min=...) in its place: the optimizer's patterns match whatever is "
    "within 1e-8 of 0, or 1e-5 of 1. Or export without it (export.optimize = false). Report it to onnxscript{shown}."
)


@dataclass(frozen=True, slots=True)
class Assumption:
    """What a step took for granted, and the line of the repository that it was taken of, where that is known."""

    text: str
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is known of one failure.

    Attributes:
        outputs: Those that fail, by name; the first is the finding's subject.
        rung: Of the ladder, the first that fails.
        located: None where no inner value is over its budget, or none could be seen.
        culprits: Optimizations that have to go for the answer to be right.
        unseen: Why no inner value could be seen.
        assumed: What capture took for granted and is false in this case, in words, and its line; None where not known.
        removed: The operation that the exporter's optimizer took for none, and its line.
        repro: The folder that shows it, relative to the output folder; "" where there is none.
    """

    outputs: Sequence[str]
    case: str
    rung: Rung
    located: Located | None = None
    culprits: Sequence[str] = ()
    unseen: str = ""
    assumed: Assumption | None = None
    removed: Assumption | None = None
    repro: str = ""


def told(diagnosis: Diagnosis, flow: Dataflow, origins: SourceMap, status: Status = "fail") -> Finding:
    """The finding."""
    subject, more = diagnosis.outputs[0], len(diagnosis.outputs) - 1
    who = f"{subject} and {more} more first go wrong" if more else f"{subject} first goes wrong"
    data: dict[str, Any] = {"rung": diagnosis.rung, "case": diagnosis.case, "outputs": list(diagnosis.outputs)}
    data |= {"repro": diagnosis.repro, "optimizers": list(diagnosis.culprits)}
    located = diagnosis.located
    origin, near = None, False
    file, line = None, None
    if located is None:
        verb = "go" if more else "goes"
        who = f"{subject} and {more} more {verb} wrong" if more else f"{subject} goes wrong"
        fault = _FAULT[diagnosis.rung].format(which=_listed(diagnosis.culprits))
        message = f"{who} in case '{diagnosis.case}': {fault}{_why(diagnosis)}"
    else:
        origin, near = origin_of(located, flow, origins)
        whose = "the CPU" if diagnosis.rung == "provider" else "PyTorch"
        rules = origin.rewrite.split(", ") if origin and origin.rewrite and not near else []
        fault = _FAULT[diagnosis.rung].format(which=_listed(diagnosis.culprits or list(dict.fromkeys(rules))))
        message = f"{who} at {_where(located, origin, near)}: {_how(located, whose)}; {fault}{_lost(diagnosis)}"
        data |= _data(located, origin)
        file, line = (origin.file, origin.line) if origin else (None, None)
    if diagnosis.removed is not None and diagnosis.removed.file:
        file, line = diagnosis.removed.file, diagnosis.removed.line
    if diagnosis.assumed is not None:
        file, line = diagnosis.assumed.file, diagnosis.assumed.line
    return finding(
        RULE,
        status,
        subject,
        message,
        hint=_hint(diagnosis),
        file=file,
        line=line if file else None,
        data=data,
    )


def _listed(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def _why(diagnosis: Diagnosis) -> str:
    """What is known where no inner value tells."""
    if diagnosis.assumed is not None:
        place = f" ({diagnosis.assumed.file}:{diagnosis.assumed.line})" if diagnosis.assumed.file else ""
        return f"; it assumes {diagnosis.assumed.text}{place}"
    if diagnosis.unseen:
        return f" ({diagnosis.unseen})"
    return "" if diagnosis.rung in ("capture", "runtime") else "; no inner value is over its budget"


def _lost(diagnosis: Diagnosis) -> str:
    """What the exporter's optimizer took out."""
    removed = diagnosis.removed
    if removed is None:
        return ""
    place = f" of {removed.file}:{removed.line}" if removed.file else ""
    return f"; it took {removed.text}{place} for no change, and removed it"


def origin_of(located: Located, flow: Dataflow, origins: SourceMap) -> tuple[Origin | None, bool]:
    """Where the value came from; where that was not noted, of a node that makes it or of the nearest above."""
    own = origins.values.get(located.gap.name)
    if own is not None and own.file:
        return own, False
    todo, seen = [located.gap.name], set[str]()
    while todo:
        name = todo.pop(0)
        other = origins.values.get(name)
        if other is not None and other.file:
            return other, True
        node = flow.node_of(name)
        fresh = [item for item in (node.input if node else ()) if item and item not in seen]
        seen.update(fresh)
        todo += fresh
    return own, False


def _where(located: Located, origin: Origin | None, near: bool) -> str:
    node = located.nodes[-1]
    text = f"node {node.name or located.gap.name} ({operator(node)})"
    if len(located.nodes) > 1:
        text += f" and the {len(located.nodes) - 1} before it"
    if origin is None:
        return text
    module = f" of module {origin.module}" if origin.module and not near else ""
    place = f"{origin.file}:{origin.line}" if origin.file else ""
    made = f", {'near' if near else 'made by'} {place}" if place else ""
    return f"{text}{module}{made}"


def _how(located: Located, who: str) -> str:
    gap = located.gap
    far = gap.text + values_text(gap)
    if not located.is_cause:
        return f"{far}, yet right on {who}'s own inputs, so it only passes on what rounding they bring"
    return f"{far}, with inputs within their budget"


def _hint(diagnosis: Diagnosis) -> str:
    shown = f" with the folder {diagnosis.repro}" if diagnosis.repro else ""
    if diagnosis.removed is not None:
        return _REMOVED.replace(_SHOWN, shown)
    hint = _HINTS[diagnosis.rung].replace(_SHOWN, shown)
    if diagnosis.located is not None and diagnosis.located.amplifiers:
        listed = ", ".join(diagnosis.located.amplifiers[:3])
        hint += f" PyTorch's own error grows tenfold at {listed}: that is the model's conditioning, and no fault."
    return hint


def operator(node: onnx.NodeProto) -> str:
    """Its operator, with the domain where it is not ai.onnx."""
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


def _data(located: Located, origin: Origin | None) -> dict[str, Any]:
    node, gap = located.nodes[-1], located.gap
    return {
        "value": gap.name,
        "node": node.name,
        "op": operator(node),
        "nodes": [item.name for item in located.nodes],
        "module": origin.module if origin else "",
        "fx": origin.fx if origin else "",
        "rewrite": origin.rewrite if origin else "",
        "times": gap.times if math.isfinite(gap.times) else None,
        "at": gap.at,
        "expected": gap.expected if not isinstance(gap.expected, float) or math.isfinite(gap.expected) else None,
        "actual": gap.actual if not isinstance(gap.actual, float) or math.isfinite(gap.actual) else None,
        "alone": None if located.alone is None else located.alone.gap.text,
        "cause": located.is_cause,
        "carriers": located.carriers[:50],
        "amplifiers": located.amplifiers[:50],
    }
