"""Stage structure: are these the exported bytes, is it a sound ONNX file, and does the runtime open it on the target?

In order, each under its own rule; what makes the next step unsafe or pointless ends the stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from onnx_ci.artifact import graph, layout, safety
from onnx_ci.artifact.layout import Artifact
from onnx_ci.errors import OnnxCiError
from onnx_ci.numerics.words import some
from onnx_ci.records.result import Finding, finding
from onnx_ci.records.source_map import SourceMap
from onnx_ci.verify import leaks
from onnx_ci.verify.session import RUNTIME_VERSION, RuntimeFault

_SHOWN = 5
_SMALL = 1024
_NOT_THE_FILE = {
    "memory": ("there was not enough memory", "Give the runner more memory; nothing is known about the model."),
    "library": (
        "a library of custom_ops could not be loaded",
        "Build or fetch it on this runner before verify; paths are relative to the config's folder.",
    ),
    "device": (
        "the provider could not be set up",
        "Check the target's options, the driver, and the libraries that this build of ONNX Runtime needs.",
    ),
}
"""Faults of the machine or the config: they say nothing about the file."""
_OWN_DOMAINS = {"", "ai.onnx", "ai.onnx.ml", "com.microsoft"}


@dataclass(frozen=True, slots=True)
class Structure:
    """What the files alone show.

    Attributes:
        model: The graph without its weights; None when it must not or can't be read.
        open_questions: Findings that count as broken only if the runtime does not open the file either.
    """

    findings: list[Finding]
    model: onnx.ModelProto | None
    open_questions: list[Finding]


def check_files(artifact: Artifact, custom_ops: Sequence[str]) -> Structure:
    """Judges the artifact's files without running anything."""
    digest = _digest(artifact)
    found = [digest]
    if digest.status in ("fail", "error"):
        return Structure(found, None, [])
    model = _read(artifact.model, found)
    if model is None:
        return Structure(found, None, [])
    external = _external_data(artifact.model, model)
    found.append(external)
    if external.status == "fail":
        return Structure(found, None, [])
    checked = _checker(artifact.model, model)
    found.append(checked)
    if checked.status == "fail":
        return Structure(found, None, [])
    questions = [_domains(model, custom_ops)]
    if checked.status == "pass":
        questions.append(_inference(artifact.model))
    found.append(leaks.judge(model))
    _let_go_of_weights(model)
    return Structure(found, model, questions)


def settle(questions: Sequence[Finding], *, opened: bool) -> list[Finding]:
    """Turns suspicions into warnings where the runtime opens the file, since then they may be healthy peculiarities."""
    return [replace(one, status="warn") if opened and one.status == "fail" else one for one in questions]


def opened(provider: str) -> Finding:
    """The pass of `structure.load`."""
    return finding("structure.load", "pass", layout.MODEL, f"ONNX Runtime opens the file on {provider}")


def not_opened(fault: RuntimeFault, provider: str, model: onnx.ModelProto, source_map: SourceMap) -> Finding:
    """Says why the runtime does not open the file, with the operator's types and source line where they are known."""
    if fault.kind in _NOT_THE_FILE:
        what, hint = _NOT_THE_FILE[fault.kind]
        message = f"{what} on {provider}, so the file was not opened: {fault.message}"
        return finding("structure.load", "error", layout.MODEL, message, hint=hint)
    origin = graph.origin_of(fault.node or graph.first_of(fault.operator, model), source_map)
    place = {"file": origin.file, "line": origin.line} if origin and origin.file else {}
    data = {"kind": fault.kind, "operator": fault.operator, "node": fault.node}
    if fault.kind != "no-kernel":
        hint = "Open the file with onnxruntime.InferenceSession locally; other export options may avoid this operator."
        if fault.kind == "no-operator":
            hint = "Name the library that brings the operator under custom_ops, or export without it."
        message = f"ONNX Runtime can't open the file on {provider}: {fault.message}"
        return finding("structure.load", "fail", layout.MODEL, message, hint=hint, data=data, **place)
    dtypes = _input_dtypes(fault.node, model)
    of = f" of {', '.join(dtypes)}" if dtypes else ""
    inside = f' of module "{origin.module}"' if origin and origin.module else ""
    at = f' (node "{fault.node}"{inside})' if fault.node else ""
    valid = "" if _too_new(model) else "the file is valid ONNX, but "
    hint = "Avoid the operator in forward, try another export.opset or onnxruntime, or name a provider that has it."
    if not {"float32", "int64", "bool"}.issuperset(dtypes):
        hint = "Export the module in a dtype that the provider computes (float32, say), or name a provider that has it."
    return finding(
        "structure.load",
        "fail",
        layout.MODEL,
        f"{valid}{provider} of onnxruntime {RUNTIME_VERSION} has no kernel for {fault.operator}{of} at opset "
        f"{_opset(model)}{at}: a service on this provider can't load it",
        hint=hint,
        data=data | {"step": "session load", "dtypes": dtypes, "opset": _opset(model)},
        **place,
    )


def _digest(artifact: Artifact) -> Finding:
    try:
        problems = layout.changed_files(artifact)
        files = len(artifact.manifest())
    except (OnnxCiError, OSError, ValueError, AttributeError) as error:
        return finding(
            "structure.digest",
            "error",
            layout.MANIFEST,
            f"the artifact can't be read: {getattr(error, 'what', error)}",
            hint="Export the model again, and hand over the whole folder.",
        )
    added = [problem for problem in problems if problem.endswith("was added after the export")]
    if not problems:
        message = f"all {files} files are the exported ones"
        return finding("structure.digest", "pass", layout.MANIFEST, message, data={"files": files})
    problems = [*(problem for problem in problems if problem not in added), *added]
    return finding(
        "structure.digest",
        "warn" if len(added) == len(problems) else "fail",
        problems[0].split(" ")[0],
        _some(problems),
        hint="Hand the folder from export to verify and to the release untouched; export again after any change.",
        data={"problems": problems},
    )


def _read(path: Path, found: list[Finding]) -> onnx.ModelProto | None:
    """Parses the file without its external weights; says why when it can't."""
    if not path.is_file():
        found.append(finding("structure.checker", "fail", layout.MODEL, f"{layout.MODEL} is missing"))
        return None
    try:
        return onnx.load(str(path), load_external_data=False)
    except Exception as error:  # protobuf's own kinds differ between its versions
        found.append(
            finding(
                "structure.checker",
                "fail",
                layout.MODEL,
                f"{layout.MODEL} ({path.stat().st_size} bytes) is not an ONNX file: {error}",
                hint="Was it cut off while it was written or downloaded? Export the model again.",
            )
        )
        return None


def _let_go_of_weights(model: onnx.ModelProto) -> None:
    """Empties weights inside the file, so that the runtime's copy is the only one; sizes and small constants stay."""
    for tensor in model.graph.initializer:
        for part in ("raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data", "string_data"):
            if len(getattr(tensor, part)) > _SMALL:
                tensor.ClearField(part)


def _external_data(path: Path, model: onnx.ModelProto) -> Finding:
    problems = safety.external_data_problems(path)
    if not problems:
        files = safety.external_files(model)
        message = (
            f"weights lie in {', '.join(files)}, whole and beside the model" if files else "no weights lie outside"
        )
        return finding("structure.external-data", "pass", layout.MODEL, message, data={"files": files})
    return finding(
        "structure.external-data",
        "fail",
        layout.MODEL,
        _some(problems),
        hint=f"Ship {layout.DATA} beside {layout.MODEL}, or set export.single_file = true.",
        data={"problems": problems},
    )


def _checker(path: Path, model: onnx.ModelProto) -> Finding:
    newest, opset = onnx.defs.onnx_opset_version(), _opset(model)
    if _too_new(model):
        return finding(
            "structure.checker",
            "warn",
            layout.MODEL,
            f"not checked: the file has IR version {model.ir_version} and opset {opset}, and onnx {onnx.__version__} "
            f"knows them up to {onnx.IR_VERSION} and {newest}",
            hint="Install a newer onnx where verify runs.",
        )
    try:
        onnx.checker.check_model(str(path))
    except Exception as error:  # ValidationError, and what protobuf raises
        return finding(
            "structure.checker",
            "fail",
            layout.MODEL,
            f"the ONNX checker refuses the file: {leaks.one_line(error)}",
            hint="The file breaks the ONNX specification; another opset or exporter version may write it rightly.",
        )
    return finding("structure.checker", "pass", layout.MODEL, "the ONNX checker accepts the file")


def _opset(model: onnx.ModelProto) -> int:
    return max((item.version for item in model.opset_import if item.domain in ("", "ai.onnx")), default=0)


def _too_new(model: onnx.ModelProto) -> bool:
    """Whether the onnx that is installed knows nothing of such files."""
    return bool(model.ir_version > onnx.IR_VERSION or _opset(model) > onnx.defs.onnx_opset_version())


def _inference(path: Path) -> Finding:
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:  # InferenceError, ValidationError
        return finding(
            "structure.inference",
            "fail",
            layout.MODEL,
            f"strict shape inference refuses the file: {leaks.one_line(error)}",
            hint="A declared type or shape in the file contradicts its operators; other tools may refuse it.",
        )
    return finding("structure.inference", "pass", layout.MODEL, "types and shapes agree under strict inference")


def _domains(model: onnx.ModelProto, custom_ops: Sequence[str]) -> Finding:
    defined = {(item.domain, item.name) for item in model.functions}
    foreign = sorted(
        {
            f"{node.domain}:{node.op_type}"
            for node in graph.all_nodes(model)
            if node.domain not in _OWN_DOMAINS and (node.domain, node.op_type) not in defined
        }
    )
    if not foreign:
        return finding("structure.domain", "pass", layout.MODEL, "all operators are ONNX's or ONNX Runtime's own")
    names = some(foreign, _SHOWN)
    if custom_ops:
        message = f"{names}: taken from {', '.join(custom_ops)}"
        return finding("structure.domain", "pass", layout.MODEL, message, data={"operators": foreign})
    return finding(
        "structure.domain",
        "fail",
        layout.MODEL,
        f"operators outside ONNX's and ONNX Runtime's domains: {names}; custom_ops names no library for them",
        hint="Name their library under custom_ops, so that every session registers it, or export without them.",
        data={"operators": foreign},
    )


def _input_dtypes(node_name: str, model: onnx.ModelProto) -> list[str]:
    node = next((node for node in graph.all_nodes(model) if node_name and node.name == node_name), None)
    if node is None:
        return []
    types = graph.value_types(model)
    return list(dict.fromkeys(types[name].dtype for name in node.input if name in types))


def _some(problems: Sequence[str]) -> str:
    more = len(problems) - _SHOWN
    return "; ".join(problems[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
