"""The contract of an export: what the file promises of inputs, outputs and dims, and what it was made of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnx_ci.artifact import layout
from onnx_ci.errors import UsageError
from onnx_ci.export import edges, program
from onnx_ci.export.halves import halves
from onnx_ci.export.ranges import declared_range, is_declared
from onnx_ci.export.subject import Graph, Subject
from onnx_ci.records import codec
from onnx_ci.records.contract import SCHEMA_VERSION, Contract, DimContract
from onnx_ci.records.environment import Environment
from onnx_ci.records.model import ModelSpec


def contract(
    subject: Subject, graph: Graph, steps: Mapping[str, int], root: Path, environment: Environment
) -> Contract:
    """Puts the contract together.

    Args:
        subject: What was exported.
        graph: With its output sizes put right.
        steps: For dims without a declared range the number that their sizes must be a multiple of.
        root: The config's folder, for the preprocessing files.
        environment: Of this interpreter.

    Raises:
        UsageError: A preprocessing file that the config names is not there.
    """
    spec, model = subject.spec, graph.model
    inputs, outputs = edges.tensor_contracts(subject, graph)
    return Contract(
        schema_version=SCHEMA_VERSION,
        model=spec.name,
        variant=spec.variant,
        contract_version=spec.contract_version,
        inputs=inputs,
        outputs=outputs,
        dims=dims(subject, graph, steps),
        batch=spec.batch or "independent",
        strategy=graph.strategy,
        exporter=subject.options.exporter,
        opset=program.opset_of(model),
        ir_version=model.ir_version,
        domains=dict(sorted((domain, int(version)) for domain, version in model.opset_imports.items())),
        environment=environment,
        frozen=edges.frozen_arguments(subject),
        kwargs=dict(spec.kwargs),
        preprocessing=_digests(subject, root),
        narrowed=dict(graph.reading.narrowed),
        export_options=_options(subject),
        declared=_declared(subject.spec),
        halves=halves(graph.captured.program) if graph.captured else None,
    )


def dims(subject: Subject, graph: Graph, steps: Mapping[str, int]) -> dict[str, DimContract]:
    """Every dim: its declared range, or the captured one where none is declared."""
    made = {}
    for name, spec in subject.declared.dims.items():
        promised, captured = declared_range(spec), graph.reading.captured.get(name)
        least = promised.least if spec.min is not None or captured is None else max(captured.least, 1)
        most = promised.most if spec.max is not None or captured is None else captured.most
        made[name] = DimContract(
            min=least,
            max=most,
            multiple_of=steps.get(name, spec.multiple_of),
            declared=is_declared(spec),
            captured_min=max(captured.least, min(least, 1)) if captured else None,
            captured_max=captured.most if captured else None,
        )
    return made


def ranges(subject: Subject, graph: Graph) -> dict[str, tuple[int, int | None]]:
    """The sizes at which each dim is tried: what is promised, as far as the capture goes along.

    A dim that was frozen or tied keeps the example's size: that finding stands, and all else is still judged.
    """
    found = {}
    for name, dim in dims(subject, graph, {}).items():
        if name in graph.reading.tied or name in graph.reading.tied.values():
            continue
        captured = dim.captured_min if dim.captured_min is not None else dim.min
        least = dim.min if captured <= 2 else max(dim.min, captured)  # torch sets 0 and 1 apart: a case tries them
        ends = [end for end in (dim.max, dim.captured_max) if end is not None]
        found[name] = (least, min(ends) if ends else None)
    return found


def _digests(subject: Subject, root: Path) -> dict[str, str]:
    found = {}
    for at, name in enumerate(subject.spec.preprocessing):
        path = root / name
        if not path.is_file():
            raise UsageError(f"{name} is not there", where=f"{subject.where}.preprocessing[{at}]")
        found[name] = layout.sha256(path)
    return found


def _options(subject: Subject) -> dict[str, Any]:
    """The options as given; where the config declares the dims, what is handed on for them."""
    given = subject.options.recorded()
    key = "dynamic_axes" if subject.options.exporter == "torchscript" else "dynamic_shapes"
    if key not in given or subject.spec.fixed:
        dims = {
            item.path: {
                str(at): "Dim.AUTO" if at in item.auto else axis
                for at, axis in enumerate(item.axes)
                if isinstance(axis, str)
            }
            for item in subject.declared.inputs
        }
        given[key] = {path: axes for path, axes in dims.items() if axes}
    return dict(sorted(given.items()))


def _declared(spec: ModelSpec) -> dict[str, Any]:
    """What the config assumes of the model, without its defaults."""
    said = {
        "entrypoint": spec.entrypoint,
        "inputs": {name: _said(given) for name, given in spec.inputs.items()},
        "dims": {name: _said(dim) for name, dim in spec.dims.items()},
        "fixed": spec.fixed,
        "input_names": spec.input_names,
        "outputs": spec.outputs,
        "cases": spec.cases,
        "batch": spec.batch,
    }
    return {key: value for key, value in said.items() if value not in (None, {}, [])}


def _said(record: Any) -> dict[str, Any]:
    return {key: value for key, value in codec.encode(record).items() if value is not None}
