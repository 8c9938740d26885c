"""Writes the file that ships, and lets go of the weights in memory."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from onnx_ci.artifact import layout
from onnx_ci.export import program
from onnx_ci.records.result import Finding, finding

_SINGLE_FILE_LIMIT = 2**31 - 1
"""Bytes that one protobuf message can hold."""


def save(model: ir.Model, folder: Path, *, single_file: bool | None) -> None:
    """Writes ``model.onnx``, and its weights to ``model.onnx.data`` unless one file is wanted.

    Raises:
        OSError: The disk is full, or the folder can't be written.
        ValueError: One file is wanted, and the weights do not fit into it.
    """
    size = weight_bytes(model)
    if single_file:
        if size >= _SINGLE_FILE_LIMIT:
            raise ValueError(f"the weights have {size} bytes, and one protobuf file holds {_SINGLE_FILE_LIMIT}")
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


def findings(
    model: ir.Model, folder: Path, *, opset: int | None, max_ir: int | None, single: bool | None
) -> list[Finding]:
    """Holds the file's versions and number of files against what the config asks for."""
    found = []
    delivered = program.opset_of(model)
    if opset is not None and delivered != opset:
        found.append(
            finding(
                "contract.opset", "fail", "opset",
                f"opset {opset} is asked for, and the exporter delivered {delivered}",
                hint=f"Ask for {delivered} if the runtime in production reads it; the exporter has no lower one.",
                data={"asked": opset, "delivered": delivered},
            )
        )  # fmt: skip
    if max_ir is not None and model.ir_version > max_ir:
        found.append(
            finding(
                "contract.ir", "fail", "ir_version",
                f"the file has IR version {model.ir_version}, but the oldest runtime reads {max_ir} at most",
                hint="Export with an older torch or exporter, or update that runtime and raise max_ir.",
                data={"max_ir": max_ir, "delivered": model.ir_version},
            )
        )  # fmt: skip
    if single and (folder / layout.DATA).exists():
        found.append(
            finding(
                "contract.files", "fail", layout.DATA,
                f"one file is declared (single_file), but the weights lie in {layout.DATA} beside it",
                hint="Leave external_data out of export_kwargs(), or ship both files and drop single_file.",
            )
        )  # fmt: skip
    return found
