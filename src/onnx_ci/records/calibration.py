"""How much benign runs of a model err beside PyTorch: the committed ``onnx-ci.calibration.json``."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from onnx_ci.records.base import record

SCHEMA_VERSION = 1
"""Version of calibration files. 1: the first."""

HIGHEST = 16.0
"""No calibration makes a budget larger: what errs more than this computes something else."""


@record
class Calibration:
    """What the runs of one model on one target showed, and under which conditions it counts.

    Attributes:
        date: ISO date on which it was made.
        provider: Of the target, with its `options`; on another one the errors are others.
        runs: What was run: "optimization all, 4 threads"; each of them twice.
        cases: Start of the sha256 over the inputs of each case, by its name. Generated inputs are seeded with the
            names of model and case, so that these stand where a seed would.
        versions: Of the packages that made the file and ran it.
        machine: Processor, cores and platform.
        artifact: Digest of the artifact that was run.
        contract: Digest of what was promised of inputs, outputs and dims.
        observed: By output, the smallest budget with which all runs pass: their error as a multiple of PyTorch's own; 0
            within the floor of the dtype.
    """

    date: str
    provider: str
    options: dict[str, Any]
    runs: list[str]
    cases: dict[str, str]
    versions: dict[str, str]
    machine: dict[str, str]
    artifact: str
    contract: str
    observed: dict[str, float] = field(default_factory=dict)


@record
class CalibrationFile:
    """All calibrations of a project: by ``model[@variant]``, then by target."""

    schema_version: int
    models: dict[str, dict[str, Calibration]] = field(default_factory=dict)
