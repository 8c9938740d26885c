"""A script that shows an export that stops: the part alone, built by the entrypoint, on the inputs that it gets."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from onnx_ci.divergence.repro import LARGEST
from onnx_ci.export import smallest
from onnx_ci.export.loading import Loaded
from onnx_ci.export.smallest import Flat, Part

SCRIPT = "repro_export.py"
VALUES = "inputs.npz"
_NO_NUMPY = {torch.bfloat16: torch.int16}
_TEXT = '''"""{title}

Run it where onnx-ci was started: it needs torch and the model's own code, and raises while the fault is there.
"""
import importlib
{imports}import sys
from pathlib import Path

import numpy as np
import torch

sys.path[:0] = {folders}
entry = importlib.import_module({name!r})
part = entry.{call}
data = np.load(Path(__file__).with_name("{values}"), allow_pickle=False)
given = [torch.from_numpy(data[name]) for name in data.files]
{export}
'''
_DYNAMO = """torch.onnx.export(
    part, {args}, kwargs={kwargs}, dynamic_shapes={shapes}, dynamo=True, verbose=False{options}
)"""
_TORCHSCRIPT = """

class Flat(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = part

    def forward(self, *given):
        return self.part(*{args}, **{kwargs})


torch.onnx.export(
    Flat().train(part.training), tuple(given), io.BytesIO(), dynamo=False,
    input_names={names}, dynamic_axes={axes}{options}
)"""


class NotWritten(Exception):
    """A part can't be shown by a script; the text says why."""


def write(folder: Path, part: Part, axes: list[list[int]] | None, given: Loaded, *, root: Path, title: str) -> None:
    """Writes the script, and the inputs beside it; weights come from the entrypoint.

    Args:
        folder: Made, with its parents.
        part: What stops, and how it is called.
        axes: Of each leaf of its call, those whose sizes vary; None where all are fixed.
        given: The model.
        root: What the entrypoint's path is relative to.
        title: What the script shows.

    Raises:
        NotWritten: Its inputs can't be written down, or the entrypoint's module has no name.
    """
    tensors: list[torch.Tensor] = []
    args, kwargs = (_expression(one, _keeping(tensors)) for one in (tuple(part.call.args), dict(part.call.kwargs)))
    arrays = [_array(one) for one in tensors]
    if sum(array.nbytes for array in arrays) > LARGEST:
        raise NotWritten(f"its inputs have more than {LARGEST >> 20} MiB")
    name, folders = _module(given.loaded.file, root)
    options = _options(given, callable(getattr(sys.modules[name], "export_kwargs", None)))
    if given.options.exporter == "dynamo":
        shapes = _expression(smallest.dynamic_shapes(part.module, part.call, axes), _no_tensor)
        imports, export = "", _DYNAMO.format(args=args, kwargs=kwargs, shapes=shapes, options=options)
    else:
        names, table = Flat(part.module, part.call).axes(axes)
        script = _TORCHSCRIPT.format(args=args, kwargs=kwargs, names=names, axes=table or None, options=options)
        imports, export = "import io\n", script
    text = _TEXT.format(
        title=title.replace("\\", "/").replace('"', "'"),
        imports=imports,
        folders=folders,
        name=name,
        call=_call(part, given),
        values=VALUES,
        export=export,
    )
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / VALUES, allow_pickle=False, **{f"input_{at}": array for at, array in enumerate(arrays)})
    (folder / SCRIPT).write_text(text, encoding="utf-8")


def _call(part: Part, given: Loaded) -> str:
    """From the entrypoint's module to the part."""
    function = "make_model" if given.loaded.short else given.spec.entrypoint.rpartition(":")[2]
    settings = f"**{_expression(dict(given.spec.kwargs), _no_tensor)}" if given.spec.kwargs else ""
    return f"{function}({settings})" + (f".get_submodule({part.name!r})" if part.name else "")


def _module(file: Path, root: Path) -> tuple[str, list[str]]:
    """By what name the entrypoint's module was imported, and the folders that it was looked for in."""
    known = (name for name, module in list(sys.modules.items()) if _file(module) == file.resolve())
    name = next((name for name in known if name.rpartition(".")[2] == file.stem), None)
    if name is None:
        raise NotWritten(f"{file.name} has the name of another module")
    above = file.resolve().parents[name.count(".")]
    return name, list(dict.fromkeys(Path(os.path.relpath(one)).as_posix() for one in (above, root)))


def _file(module: Any) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if isinstance(file, str) else None


def _options(given: Loaded, is_function: bool) -> str:
    """Those of the config as they are; those of export_kwargs, which may hold functions, from there."""
    opset = f", opset_version={given.options.opset}" if given.options.opset is not None else ""
    keys = list(given.options.handed_on)
    known = "entry.export_kwargs()" if is_function else "entry.export_kwargs"
    return opset + (f", **{{key: {known}[key] for key in {keys}}}" if keys else "")


def _expression(value: Any, tensor: Callable[[torch.Tensor], str]) -> str:
    """A value as Python has it."""
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if value is None or type(value) in (bool, int, str):
        return repr(value)
    if type(value) is float:
        return repr(value) if math.isfinite(value) else f"float('{value}')"
    if isinstance(value, torch.dtype):
        return str(value)
    if value is torch.export.Dim.AUTO:
        return "torch.export.Dim.AUTO"
    if type(value) in (list, tuple):
        inner = ", ".join(_expression(item, tensor) for item in value)
        return f"[{inner}]" if type(value) is list else f"({inner}{',' if len(value) == 1 else ''})"
    if type(value) is dict:
        pairs = (f"{_expression(key, tensor)}: {_expression(item, tensor)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    raise NotWritten(f"an input of type {type(value).__name__} can't be written down")


def _keeping(tensors: list[torch.Tensor]) -> Callable[[torch.Tensor], str]:
    def kept(tensor: torch.Tensor) -> str:
        at = next((at for at, known in enumerate(tensors) if known is tensor), len(tensors))
        if at == len(tensors):
            tensors.append(tensor)
        return f"given[{at}]" + (f".view({tensor.dtype})" if tensor.dtype in _NO_NUMPY else "")

    return kept


def _no_tensor(tensor: torch.Tensor) -> str:
    raise NotWritten("a tensor can't be written down there")


def _array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    try:
        plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
        array: np.ndarray[Any, Any] = plain.view(_NO_NUMPY.get(tensor.dtype, tensor.dtype)).numpy()
    except (TypeError, RuntimeError) as error:  # on another device, sparse, quantized, or of a dtype of torch's own
        raise NotWritten(f"an input is no array: {error}") from error
    return array
