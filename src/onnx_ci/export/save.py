"""Writes the file that ships, and lets go of the weights in memory."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from onnx_ci.artifact import layout

_SINGLE_FILE_LIMIT = 2**31 - 1
"""Bytes that one protobuf message can hold."""


def save(model: ir.Model, folder: Path, *, single_file: bool | None) -> None:
    """Writes ``model.onnx``, and its weights to ``model.onnx.data`` unless one file is wanted and can hold them.

    Raises:
        OSError: The disk is full, or the folder can't be written.
    """
    if single_file and weight_bytes(model) < _SINGLE_FILE_LIMIT:
        ir.save(model, str(folder / layout.MODEL))
        return
    ir.save(model, str(folder / layout.MODEL), external_data=layout.DATA)
    data = folder / layout.DATA
    if data.exists() and data.stat().st_size == 0:
        data.unlink()  # no weight was large enough to move there


def weight_bytes(model: ir.Model) -> int:
    """What the initializers take."""
    values = (value.const_value for graph in model.graphs() for value in graph.initializers.values())
    return sum(tensor.nbytes for tensor in values if tensor is not None)


def release(model: ir.Model) -> None:
    """Lets go of the weights: the exporter's program stays referenced, and the runtime will hold a copy of its own."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            value.const_value = None
