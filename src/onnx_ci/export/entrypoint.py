"""Runs the user's entrypoint: from a line of the config to an nn.Module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from onnx_ci.errors import UsageError
from onnx_ci.export import usercode
from onnx_ci.export.types import Entrypoint
from onnx_ci.records.model import ModelSpec

_INSTEAD = "Return the module itself, in eval mode."


def load(spec: ModelSpec, root: Path) -> Entrypoint:
    """Imports the entrypoint's file, relative to `root`, and builds the module.

    Raises:
        UsageError: No such file, module or function, or something else than an nn.Module came back.
        OnnxCiError: The user's code raised; `where` is the user's line.
    """
    where = f"models.{spec.name}.entrypoint"
    target, name = usercode.split(spec.entrypoint)
    short = not name
    if short and not target.endswith(".py"):
        raise UsageError(
            f"{spec.entrypoint} names no function",
            where=where,
            hint="Write path.py:function or package.module:function; a file alone must end in .py.",
        )
    module, file = usercode.load(target, root, where=where)
    name = name or "make_model"
    made = usercode.run(usercode.function(module, file, name, where=where), root, where=where, name=name, **spec.kwargs)
    options = _export_kwargs(getattr(module, "export_kwargs", None) if short else None, root, where)
    return Entrypoint(
        module=_check(made, f"{name}()", where),
        make_inputs=getattr(module, "make_inputs", None) if short else None,
        export_kwargs=options,
        file=file,
        short=short,
    )


def reference(spec: ModelSpec, root: Path) -> torch.nn.Module:
    """Builds the module that was there before it was adapted, with those of the model's settings that its function has.

    Raises:
        UsageError: No such file, module or function, or something else than an nn.Module came back.
        OnnxCiError: The user's code raised; `where` is the user's line.
    """
    where = f"models.{spec.name}.reference"
    target, name = usercode.split(spec.reference or "")
    if not name:
        hint = "Write path.py:function or package.module:function."
        raise UsageError(f"{spec.reference} names no function", where=where, hint=hint)
    module, file = usercode.load(target, root, where=where)
    function = usercode.function(module, file, name, where=where)
    made = usercode.run(function, root, where=where, name=name, **usercode.accepted(function, spec.kwargs))
    return _check(made, f"{name}()", where)


def _export_kwargs(function: Any, root: Path, where: str) -> dict[str, Any]:
    if function is None:
        return {}
    given = usercode.run(function, root, where=where, name="export_kwargs") if callable(function) else function
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
        raise UsageError(
            f"export_kwargs() returned {usercode.kind(given)}, not a dict of options",
            where=where,
            hint="Return what torch.onnx.export takes by keyword, for example {'opset_version': 20}.",
        )
    return dict(given)


def _check(made: Any, who: str, where: str) -> torch.nn.Module:
    if isinstance(made, torch.jit.ScriptModule):
        problem, hint = (
            "a ScriptModule",
            "The exporter reads Python: return the module before torch.jit.script or trace.",
        )
    elif isinstance(made, torch.export.ExportedProgram):
        problem, hint = (
            "an ExportedProgram",
            "Return the nn.Module: it is the reference that the file is compared with.",
        )
    elif isinstance(made, torch.nn.Module) and type(made).__name__ == "OptimizedModule":
        problem, hint = "a module compiled by torch.compile", "Return the module before torch.compile."
    elif isinstance(made, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        problem, hint = f"a module wrapped in {type(made).__name__}", "Return what it wraps: return module.module."
    elif isinstance(made, torch.nn.Module):
        return made
    elif isinstance(made, type) and issubclass(made, torch.nn.Module):
        problem, hint = f"the class {made.__name__}, not an instance", f"Call it: return {made.__name__}(...).eval()."
    elif made is None:
        problem, hint = "None", "Is the return missing?"
    elif isinstance(made, dict) and made and all(isinstance(value, torch.Tensor) for value in made.values()):
        problem, hint = "a dict of tensors (a state_dict?)", "Build the module, load the state into it, and return it."
    else:
        problem, hint = usercode.kind(made), _INSTEAD
    raise UsageError(f"{who} returned {problem}; an nn.Module is needed", where=where, hint=hint)
