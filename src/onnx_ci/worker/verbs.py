"""The verbs of a request in the user's interpreter: each imports its job when it is asked for, and none but that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx_ci.records import codec
from onnx_ci.records.messages import (
    CalibrateRequest,
    DeployedRequest,
    DiagnoseRequest,
    ExportRequest,
    MemoryRequest,
    ReexportRequest,
    Request,
    VerifyRequest,
)


def perform(request: Request, progress: Callable[[str], None]) -> dict[str, Any]:
    """What the verb of a request gives, encoded; `progress` is told of each stage as it begins."""
    if request.verb == "environment":
        from onnx_ci.artifact.machine import describe

        return _encoded(describe())
    if request.verb == "export":
        from onnx_ci.export.job import export

        return _encoded(export(codec.decode(ExportRequest, request.payload), progress))
    if request.verb == "reexport":
        from onnx_ci.export.second import reexport

        return _encoded(reexport(codec.decode(ReexportRequest, request.payload), progress))
    if request.verb == "deployed":
        from onnx_ci.verify.deployed import deployed

        return _encoded(deployed(codec.decode(DeployedRequest, request.payload), progress))
    if request.verb == "memory":
        from onnx_ci.verify.memory import memory

        return _encoded(memory(codec.decode(MemoryRequest, request.payload), progress))
    if request.verb == "calibrate":
        from onnx_ci.verify.calibrate import calibrate

        return _encoded(calibrate(codec.decode(CalibrateRequest, request.payload), progress))
    if request.verb == "diagnose":
        from onnx_ci.export.diagnose import diagnose

        return _encoded(diagnose(codec.decode(DiagnoseRequest, request.payload), progress))
    from onnx_ci.verify.job import verify

    return _encoded(verify(codec.decode(VerifyRequest, request.payload), progress))


def _encoded(record: object) -> dict[str, Any]:
    encoded: dict[str, Any] = codec.encode(record)
    return encoded
