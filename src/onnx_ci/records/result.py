"""What one model did on one target: findings, figures, timings, and the conditions they hold under."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from typing import Any, Literal, get_args

from onnx_ci.records.base import record
from onnx_ci.records.contract import Contract
from onnx_ci.records.environment import Environment

SCHEMA_VERSION = 1
"""Version of results and reports. 1: the first."""

EXPORT_TARGET = "export"
"""The target name under which the export job writes what it found; no config may use it."""

Status = Literal["pass", "warn", "fail", "error", "skip"]
Stage = Literal[
    "environment", "rewrite", "export", "structure", "contract", "parity", "decoded", "golden", "provider", "latency"
]
STAGES: tuple[Stage, ...] = get_args(Stage)
_RANK: dict[Status, int] = {"skip": 0, "pass": 1, "warn": 2, "fail": 3, "error": 4}


@record
class Finding:
    """One judged fact.

    Attributes:
        rule: Its id, ``stage.name``, as in the catalogue.
        subject: What was judged: an output, a dim, a file, a package; empty for the model as a whole.
        message: One sentence with the figures; plain text, never markdown.
        hint: What to do next; empty where nothing is known to help.
        file: Path relative to the repository's root, with forward slashes.
        line: From 1.
        data: Figures for machines.
    """

    rule: str
    stage: Stage
    status: Status
    subject: str
    message: str
    hint: str = ""
    file: str | None = None
    line: int | None = None
    data: dict[str, Any] = field(default_factory=dict)


def causes(found: Finding) -> list[str]:
    """The exceptions behind a finding, the outermost first; none where it has none, or where they are no texts."""
    told = found.data.get("chain")
    return [one for one in told if isinstance(one, str)] if isinstance(told, list) else []


def output_of(subject: str, outputs: Collection[str]) -> str:
    """The output that a subject is or is an item of: "y" of "y[2]"; an output may itself be called so."""
    while subject not in outputs and subject.endswith("]") and "[" in subject:
        subject = subject.rpartition("[")[0]
    return subject


def finding(rule: str, status: Status, subject: str, message: str, **more: Any) -> Finding:
    """Makes a finding whose stage is the first part of its rule."""
    stage = rule.partition(".")[0]
    if stage not in STAGES:
        raise ValueError(f"{rule}: no such stage")
    return Finding(rule=rule, stage=stage, status=status, subject=subject, message=message, **more)


@record
class StageCost:
    """What a stage took: wall seconds, and the peak resident memory of the process up to its end, in bytes."""

    seconds: float
    peak_bytes: int | None = None


@record
class OutputFigures:
    """The elementwise and the norm figures of one output of one case; all are of float64 differences.

    Attributes:
        dims: The case's dims by name.
        against: "oracle" when errors are taken against the module in float64, "eager" when it has no float64 form.
        e_torch: relL2 of PyTorch against the oracle; None when unoracled.
        e_runtime: relL2 of the target against the oracle (or against eager).
        limit: What e_runtime may be; None when judged by atol and rtol, or exactly.
        max_abs: Largest absolute difference, at `max_abs_at`.
        max_rel: Largest relative difference among elements above the floor.
        beyond: Share of elements over the elementwise limit, 0 to 1.
        argmax_agreement: Share of rows (last axis) whose argmax agrees; None below two elements.
        e_function: relL2 of the file in float64 against the oracle, equal on every target; None where it did not run.
        function_limit: What e_function may be.
        options: What loosens the arithmetic in this row, with the deployment's options; "" with the strict ones.
    """

    case: str
    output: str
    dtype: str
    shape: list[int]
    dims: dict[str, int]
    status: Status
    against: Literal["oracle", "eager", "exact"]
    e_torch: float | None = None
    e_runtime: float | None = None
    limit: float | None = None
    max_abs: float | None = None
    max_abs_at: list[int] | None = None
    max_rel: float | None = None
    cosine: float | None = None
    ulp: float | None = None
    beyond: float | None = None
    argmax_agreement: float | None = None
    e_function: float | None = None
    function_limit: float | None = None
    note: str = ""
    options: str = ""


COMPILED = "torch.compile"
"""The runner of a timing that was compiled by it, as findings and reports name it."""


@record
class Timing:
    """Latency of one runner on one case; every sample is kept, in milliseconds.

    Attributes:
        runner: "onnxruntime", "eager" or "torch.compile"; in a comparison with a base "head" and "base".
        transfers: Whether copies to and from the device are inside the clock.
    """

    runner: str
    case: str
    dims: dict[str, int]
    provider: str
    threads: int
    warmup: int
    samples_ms: list[float]
    p50_ms: float
    p90_ms: float
    p99_ms: float
    transfers: Literal["inside", "outside"] = "inside"


@record
class Memory:
    """The peak of memory while a file is opened and runs a case, above what the process held before.

    Attributes:
        runner: "onnxruntime" for what is judged, "base" for what it is compared with.
        case: Of the inputs that take the most bytes.
        runs: How many there were.
        host_bytes: Resident memory of the process; None where it was not measured, and `host_note` says why. Else the
            note says how, where it is not the usual way.
        device_bytes: Of the device's own memory, likewise; None with no note where the target has no device.
    """

    runner: str
    case: str
    dims: dict[str, int]
    provider: str
    threads: int
    runs: int = 0
    host_bytes: int | None = None
    host_note: str = ""
    device_bytes: int | None = None
    device_note: str = ""


@record
class Result:
    """What one model did on one target; the export job writes one too, under the target name "export".

    Attributes:
        contract: Of an export that made an artifact, so that the report can hold it against the base's.
    """

    schema_version: int
    model: str
    variant: str | None
    target: str
    required: bool
    status: Status
    artifact: str | None
    environment: Environment
    provider: str | None = None
    stages: dict[str, StageCost] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    parity: list[OutputFigures] = field(default_factory=list)
    latency: list[Timing] = field(default_factory=list)
    log: str = ""
    contract: Contract | None = None
    memory: list[Memory] = field(default_factory=list)


def worst(statuses: list[Status]) -> Status:
    """The status of the whole: error over fail over warn over pass over skip; nothing at all is an error."""
    return max(statuses, key=_RANK.__getitem__) if statuses else "error"


def label(model: str, variant: str | None) -> str:
    """``model`` or ``model@variant``: the name of the artifact's folder and of the golden's."""
    return f"{model}@{variant}" if variant else model
