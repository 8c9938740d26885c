"""The options that shape the file: the short form's export_kwargs, or the config's, in one record."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass, field
from typing import Any

import torch

from onnx_ci.errors import UsageError
from onnx_ci.export import declared
from onnx_ci.export.types import Entrypoint
from onnx_ci.records.model import ModelSpec

_OURS = {"model": "the entrypoint gives the model"}
_IGNORED = {
    "f",
    "verbose",
    "verify",
    "report",
    "profile",
    "dump_exported_program",
    "artifacts_dir",
    "dynamo",
    "fallback",
}
_ONLY_DYNAMO = ("custom_translation_table", "optimize")


@dataclass(frozen=True, slots=True)
class Options:
    """How to export.

    Attributes:
        opset: As asked; None leaves it to the exporter.
        single_file: Whether no ``.data`` may lie beside the file; None: weights go there when there are any.
        optimize: Whether the exporter's optimizer runs (dynamo only; the older exporter folds constants itself).
        handed_on: What else goes to torch.onnx.export as it is.
        args: The short form's own call, when it gives one; likewise `kwargs`.
    """

    exporter: str
    opset: int | None
    single_file: bool | None
    optimize: bool = True
    handed_on: dict[str, Any] = field(default_factory=dict)
    args: tuple[Any, ...] | None = None
    kwargs: dict[str, Any] | None = None
    input_names: list[str] | None = None
    output_names: list[str] | None = None
    dynamic_shapes: Any = None
    dynamic_axes: Any = None

    def recorded(self) -> dict[str, Any]:
        """For the contract: every option that was given, in JSON's own types."""
        given: dict[str, Any] = {"exporter": self.exporter, "opset_version": self.opset, "optimize": self.optimize}
        given |= {"single_file": self.single_file, "input_names": self.input_names, "output_names": self.output_names}
        given |= {
            "dynamic_shapes": None if self.dynamic_shapes is None else _shown(self.dynamic_shapes),
            "dynamic_axes": None if self.dynamic_axes is None else _shown(self.dynamic_axes),
        }
        given |= {key: _shown(value) for key, value in self.handed_on.items()}
        return {key: value for key, value in given.items() if value is not None}


def read(spec: ModelSpec, entrypoint: Entrypoint) -> Options:
    """Merges the config with the short form's export_kwargs, which win where they say how to export.

    Raises:
        UsageError: A key that torch.onnx.export lacks, or that the exporter in use does not take.
    """
    if not entrypoint.short:
        return Options(spec.export.exporter, spec.export.opset, spec.export.single_file, spec.export.optimize)
    given = dict(entrypoint.export_kwargs)
    where = f"models.{spec.name}: export_kwargs()"
    exporter = "torchscript" if declared.uses_torchscript(spec, entrypoint) else "dynamo"
    _check(given, exporter, where)
    if given.get("f") is not None:
        print(f"{where}: f is ignored, the artifact's folder is named by --out", file=sys.stderr)
    external = given.pop("external_data", None)
    optimize = given.pop("optimize", spec.export.optimize)
    args = given.pop("args", None)
    return Options(
        exporter=exporter,
        opset=given.pop("opset_version", None) or spec.export.opset,
        single_file=spec.export.single_file if external is None else not external,
        optimize=bool(optimize),
        args=args if args is None or isinstance(args, tuple) else (args,),
        kwargs=given.pop("kwargs", None),
        input_names=_names(given.pop("input_names", None)),
        output_names=_names(given.pop("output_names", None)),
        dynamic_shapes=given.pop("dynamic_shapes", None),
        dynamic_axes=given.pop("dynamic_axes", None),
        handed_on={key: value for key, value in given.items() if key not in _IGNORED},
    )


def _check(given: dict[str, Any], exporter: str, where: str) -> None:
    known = set(inspect.signature(torch.onnx.export).parameters) | {"fallback"}
    for key in given:
        if key in _OURS:
            raise UsageError(f"{key} can't be given: {_OURS[key]}", where=where, hint="Leave it out.")
        if key not in known:
            raise UsageError(
                f"torch.onnx.export has no parameter {key}", where=where, hint="See torch's own reference."
            )
        if exporter == "torchscript" and key in _ONLY_DYNAMO and given[key] is not None:
            raise UsageError(f"{key} is an option of the dynamo exporter", where=where, hint="Leave it out.")


def _names(given: Any) -> list[str] | None:
    return None if given is None else [str(name) for name in given]


def _shown(value: Any) -> Any:
    """A value as JSON has it; what JSON lacks as text that reads like the Python it came from."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): _shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shown(item) for item in value]
    if isinstance(value, torch.export.Dim):
        return _dim(value)
    name = getattr(value, "__name__", None) or str(value)
    return type(value).__name__ if " at 0x" in name else name


def _dim(dim: Any) -> str:
    """``Dim('batch', min=1, max=32)``, without the ends that torch gives a dim of none; ``2*h`` of a derived one."""
    if "*" in dim.__name__ or "+" in dim.__name__ or "-" in dim.__name__:
        return str(dim.__name__)
    low = f", min={dim.min}" if isinstance(dim.min, int) and dim.min > 0 else ""
    high = f", max={dim.max}" if isinstance(dim.max, int) else ""
    return f"Dim({dim.__name__!r}{low}{high})"
