"""What the user gives of a model: the module, how to export it, its cases, and what is declared of its inputs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onnx_ci.export import arguments, cases, declared, entrypoint, given, measure, options, state, variants
from onnx_ci.export.options import Options
from onnx_ci.export.places import Places
from onnx_ci.export.subject import Subject
from onnx_ci.export.types import Call, Declared, Entrypoint, Outputs, RunCase
from onnx_ci.records.model import ModelSpec
from onnx_ci.records.result import Finding


@dataclass(frozen=True, slots=True)
class Loaded:
    """The user's side of an export, before the module was called.

    Attributes:
        example: The first case, measured: what the export runs on.
        user: All of the user's cases.
        findings: What was found on the way.
        weights: Digest of the module's state as it was loaded; "" for a model without dynamic dims.
    """

    spec: ModelSpec
    loaded: Entrypoint
    options: Options
    declared: Declared
    example: RunCase
    user: list[RunCase]
    places: Places
    findings: list[Finding]
    weights: str

    def call(self, case: RunCase) -> Call:
        """How forward is called for a case."""
        return arguments.bind(self.loaded.module, case.inputs)

    def subject(self, case: RunCase, eager: Outputs) -> Subject:
        """The model as it is exported on a case, for which the module gave these outputs."""
        return Subject(
            spec=self.spec,
            module=self.loaded.module,
            example=case.inputs,
            call=self.call(case),
            leaves=arguments.leaves(self.loaded.module, case.inputs),
            eager=eager,
            declared=self.declared,
            options=self.options,
            short=self.loaded.short,
            places=self.places,
            weights=self.weights,
        )


def load(spec: ModelSpec, root: Path) -> Loaded:
    """Runs the user's functions and reads the case files.

    Raises:
        OnnxCiError: The config asks for what can't be, or the user's code raised.
    """
    loaded = entrypoint.load(spec, root)
    how = options.read(spec, loaded)
    found, left_out = variants.fitting(spec, loaded, given.read(spec, loaded, root))
    first = cases.example(spec, loaded, found)
    promised = declared.declare(spec, loaded, first.inputs, loaded.module)
    return Loaded(
        spec=spec,
        loaded=loaded,
        options=how,
        declared=promised,
        example=measure.measure(first, promised),
        user=cases.user_cases(found, promised),
        places=Places.of(root),
        findings=left_out,
        weights=state.digest(loaded.module) if promised.dims else "",
    )
