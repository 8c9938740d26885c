"""What the tool and the worker in the user's interpreter say to each other, a JSON line each."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from onnx_ci.records.base import record
from onnx_ci.records.calibration import Calibration
from onnx_ci.records.model import JobSpec, TargetSpec
from onnx_ci.records.result import Finding, OutputFigures, StageCost, Timing

Verb = Literal["environment", "export", "reexport", "diagnose", "verify", "deployed", "memory", "calibrate"]


@record
class Request:
    """Tool to server: run one verb in a fresh worker.

    Attributes:
        payload: The verb's own request, encoded; empty for "environment".
        log: Absolute path of the file that takes the worker's stdout and stderr.
        time_limit: Seconds; after that the worker's process group is killed.
        memory_limit: Bytes of resident memory of the process group; None: unlimited.
    """

    id: int
    verb: Verb
    log: str
    time_limit: float
    memory_limit: int | None = None
    payload: dict[str, Any] = field(default_factory=dict)


@record
class Event:
    """Server to tool, about one request.

    Attributes:
        kind: "progress" while it works; then one of "result", "raised" (an exception, as data: what, where, hint)
            or "died" (no answer: `message` says of what: a signal, an exit code, the time or the memory limit).
        stage: What the worker was at, for "progress"; for "raised" the kind of cause: "package" (one is not installed,
            `where` names it), "machine", or "" (the model's own).
        crashed: For "died": by a signal of native code, such as a segmentation fault.
        internal: Whether what was raised is a fault of onnx-ci itself; the log has the traceback.
        exit_code: What "raised" asks the process to exit with.
        payload: The verb's record, encoded, for "result".
    """

    id: int
    kind: Literal["ready", "progress", "result", "raised", "died"]
    stage: str = ""
    message: str = ""
    where: str = ""
    hint: str = ""
    crashed: bool = False
    internal: bool = False
    exit_code: int = 3
    payload: dict[str, Any] = field(default_factory=dict)


@record
class ExportRequest:
    """What the export job of one model needs.

    Attributes:
        root: Absolute folder of the config file: entrypoints, cases and source lines are relative to it.
        artifact: Absolute folder to write; it is made anew.
        golden: Absolute folder of this model's golden; None where there is none to compare with.
        repro: Absolute folder for what shows a fault without the rest; it is made anew. None for nowhere.
        runs_file: Whether the written file is run here too; False once that has ended a worker.
        compiles: Whether torch.compile is timed where the config asks for it; likewise.
    """

    job: JobSpec
    root: str
    artifact: str
    golden: str | None = None
    repro: str | None = None
    runs_file: bool = True
    compiles: bool = True


@record
class ReexportRequest:
    """What a second export of one model at another example needs.

    Attributes:
        artifact: Absolute folder of the first export, read and never written.
        weights: Digest of the module's state when it was first loaded; "" where it is not known.
        program: Digest of the program that the first export captured; "" where it is not known.
    """

    job: JobSpec
    root: str
    artifact: str
    weights: str = ""
    program: str = ""


@record
class Reexported:
    """What a second export showed, and what it took."""

    findings: list[Finding]
    cost: StageCost


@record
class DiagnoseRequest:
    """A question on an export that stopped.

    Attributes:
        ask: Which part of the module still stops alone, or whether the other exporter takes the module.
        seconds: After this time no further export is begun.
        step: Where it stopped; `kind` and `operator` say of what, `module` in which submodule, as far as is known.
        report: Absolute path for what the exporter itself reports of the part.
        repro: Absolute path of a folder for a script that shows the failure alone; "" for none.
        title: What the script shows.
    """

    job: JobSpec
    root: str
    ask: Literal["part", "other exporter"]
    seconds: float
    step: str = ""
    kind: str = ""
    operator: str = ""
    module: str = ""
    report: str = ""
    repro: str = ""
    title: str = ""


@record
class Diagnosis:
    """The answer.

    Attributes:
        part: Path of the smallest submodule that still stops alone; "" for the module itself. None: not told.
        type: The part's class.
        exports: How many exports that took.
        ended: Why there may be a smaller one; "" when all was tried.
        reported: Whether the exporter's own report lies where it was asked for.
        shown: Whether the script was written.
        takes: Whether the other exporter takes the module; None: not told. `said`: why it does not.
    """

    cost: StageCost
    part: str | None = None
    type: str = ""
    exports: int = 0
    ended: str = ""
    reported: bool = False
    shown: bool = False
    takes: bool | None = None
    said: str = ""


@record
class VerifyRequest:
    """What judging one artifact on one target needs, as above; `job` may be newer than the artifact's own.

    Attributes:
        base: Absolute folder of the base's artifact of this model, to compare latency with; None without one.
    """

    artifact: str
    target: TargetSpec
    job: JobSpec
    golden: str | None = None
    base: str | None = None
    repro: str | None = None


@record
class DeployedRequest:
    """What judging the same artifact with the deployment's own options needs, once the strict ones are judged.

    Attributes:
        broken: Stages that did not pass with the strict options.
    """

    verify: VerifyRequest
    broken: list[str] = field(default_factory=list)


@record
class Deployed:
    """What the deployment's options gave."""

    findings: list[Finding]
    figures: list[OutputFigures]
    timings: list[Timing]
    stages: dict[str, StageCost]


@record
class MemoryRequest:
    """What measuring the memory of one file on one target needs; in a process that has opened none before.

    Attributes:
        base: Whether it is the base's file that is measured, on the head's case.
    """

    verify: VerifyRequest
    base: bool = False


@record
class CalibrateRequest:
    """What calibrating one artifact on one target needs."""

    artifact: str
    target: TargetSpec
    job: JobSpec


@record
class Calibrated:
    """What calibrating gave.

    Attributes:
        calibration: None where the provider is not there; then `absent` says why.
        refused: Outputs that are wrong beyond any budget, with the reason; "" is the model as a whole.
    """

    calibration: Calibration | None = None
    absent: str = ""
    refused: dict[str, str] = field(default_factory=dict)
