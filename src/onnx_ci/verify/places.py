"""Where a finding points to: the source line of the node or output that it names; else the model's in the config."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from onnx_ci.artifact import graph
from onnx_ci.records.model import ModelSpec
from onnx_ci.records.result import Finding
from onnx_ci.records.source_map import Origin, SourceMap

_STAGES = ("contract", "parity", "golden")
_NODE = re.compile(r"[Nn]ame:? ?'([^']+)'")
"""How ONNX Runtime names the node that it stopped in."""
_EXPORTERS_OWN = re.compile(r"\d+|getitem(_\d+)?")
"""Names of outputs that nobody gave: a number by the older exporter, an item of a tuple by the newer one."""


def placed(
    findings: Sequence[Finding], outputs: Sequence[str], origins: SourceMap, declared: ModelSpec
) -> list[Finding]:
    """Gives each finding that somebody must look at a line, and makes outputs with a name of nobody's readable.

    Args:
        findings: Of one target.
        outputs: Names of the file's outputs.
        origins: Where the file's values come from.
        declared: The model, for its line in the config and the names that it gives to outputs.
    """
    nodes = graph.origins_by_node(origins)
    shown = {name: _is_unnamed(name, origins.values.get(name), declared) for name in outputs}
    made = []
    for one in findings:
        found = replace(one, message=_quoted(one.subject, one.message)) if shown.get(one.subject) else one
        if found.stage in _STAGES and found.status in ("fail", "warn") and found.file is None:
            named = [nodes[name] for name in _NODE.findall(found.message) if name in nodes]
            output = [origins.values[found.subject]] if found.subject in origins.values else []
            line = next((origin for origin in (*named, *output) if origin.file), None)
            file, number = (line.file, line.line) if line else (declared.declared_in or None, declared.declared_at)
            found = replace(found, file=file, line=number if file else None)
        made.append(found)
    return made


def _is_unnamed(name: str, origin: Origin | None, declared: ModelSpec) -> bool:
    given = declared.outputs or []
    return name not in given and (bool(_EXPORTERS_OWN.fullmatch(name)) or (origin is not None and origin.fx == name))


def _quoted(name: str, message: str) -> str:
    """Writes ``output "5"`` for the first 5 that stands for an output: at a beginning, before what is said of it."""
    return re.sub(rf"(^|: ){re.escape(name)}(?=: | of )", rf'\g<1>output "{name}"', message, count=1)
