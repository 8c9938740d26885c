"""Which of the user's cases are for which variant: by the sizes that each variant fixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from onnx_ci.errors import UsageError
from onnx_ci.export import arguments, declared, dynamic
from onnx_ci.export.axes import names_in, size_of
from onnx_ci.export.given import Given
from onnx_ci.export.types import Entrypoint
from onnx_ci.numerics.words import some
from onnx_ci.records.model import ModelSpec
from onnx_ci.records.result import Finding, finding, label

Axes = Mapping[str, Mapping[int, str]]
"""By the path of an input and by axis: the dim that stands there, or an expression of one."""


def fitting(spec: ModelSpec, loaded: Entrypoint, gathered: Sequence[Given]) -> tuple[list[Given], list[Finding]]:
    """The cases whose sizes are this variant's, and what is to be said of the others.

    Raises:
        UsageError: None fits, and nothing else tells what the export should run on.
    """
    if not spec.fixed or not gathered:
        return list(gathered), []
    axes = _axes(spec, loaded, gathered[0])
    kept = [case for case in gathered if _fits(case, axes, spec.fixed)]
    others = [case.name for case in gathered if not _fits(case, axes, spec.fixed)]
    homeless = [case.name for case in gathered if not any(_fits(case, axes, fixed) for fixed in spec.variants.values())]
    sizes = ", ".join(f"{name} {size}" for name, size in spec.fixed.items())
    if not kept and not (spec.inputs and all(given.shape is not None for given in spec.inputs.values())):
        raise UsageError(
            f"none of the {len(gathered)} cases has the sizes of this variant ({sizes}), "
            "and there is no shape to make one from",
            where=f"models.{spec.name}.variants: {spec.variant}",
            hint="Give a case of these sizes, or declare the shapes: inputs.NAME = { shape = […] }.",
        )
    return kept, [*_left_out(spec, others, sizes), *_homeless(spec, homeless)]


def _axes(spec: ModelSpec, loaded: Entrypoint, first: Given) -> Axes:
    """Where dims stand: in the config's shapes, else as the short form's export_kwargs say."""
    found: dict[str, dict[int, str]] = {}
    if loaded.short:
        torchscript = declared.uses_torchscript(spec, loaded)
        said = dynamic.read(loaded.export_kwargs, torchscript, loaded.module, first.inputs, "export_kwargs")
        for path, axes in said.axes.items():
            found[path] = {at: axis.dim for at, axis in axes.items() if isinstance(axis.dim, str)}
    for path, given in spec.inputs.items():
        shape = given.named or given.shape
        if shape is not None:
            found[path] = {at: axis for at, axis in enumerate(shape) if isinstance(axis, str)}
    return found


def _fits(case: Given, axes: Axes, fixed: Mapping[str, int]) -> bool:
    """Whether a case has these sizes; one of another form is kept, since that is a fault to be told."""
    leaves = arguments.paths(case.inputs)
    for path, named in axes.items():
        leaf = leaves.get(path)
        for at, axis in named.items():
            if not isinstance(leaf, torch.Tensor) or leaf.dim() <= at or not names_in(axis) <= fixed.keys():
                continue
            if leaf.shape[at] != size_of(axis, fixed):
                return False
    return True


def _left_out(spec: ModelSpec, names: Sequence[str], sizes: str) -> list[Finding]:
    if not names:
        return []
    message = f"{_count(names)} of other sizes than this variant's ({sizes}), and not run here: {some(names)}"
    return [finding("contract.case", "skip", spec.variant or "", message, data={"cases": list(names)})]


def _homeless(spec: ModelSpec, names: Sequence[str]) -> list[Finding]:
    if not names or spec.variant != next(iter(spec.variants)):  # said once, by the first
        return []
    return [
        finding(
            "contract.case", "warn", name, f"the case {name} has sizes that no variant of {spec.name} takes",
            hint="Add a variant for its sizes, or take the case out: one of the two is not what production sends.",
            data={"variants": [label(spec.name, variant) for variant in spec.variants]},
        )
        for name in names
    ]  # fmt: skip


def _count(names: Sequence[str]) -> str:
    return "1 case is" if len(names) == 1 else f"{len(names)} cases are"
