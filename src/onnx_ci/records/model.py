"""The resolved config: what a model declares and how it is to be exported and judged."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from onnx_ci.records.base import record
from onnx_ci.records.calibration import HIGHEST, Calibration

CPU = "CPUExecutionProvider"
"""The provider that every build of ONNX Runtime has."""


@record
class DimSpec:
    """A named dim. Without `min` and `max` it has no declared range: the captured one becomes the contract."""

    min: int | None = None
    max: int | None = None
    example: int | None = None
    multiple_of: int = 1


@record
class InputSpec:
    """What production sends for one parameter of forward.

    Attributes:
        dtype: numpy's name, or "bfloat16" or "string"; None where the example tells.
        shape: Dim names and sizes; None where the example tells.
        low: Inclusive lower end of the values; likewise `high`.
        values: The only values there are, for categorical inputs.
        nonfinite: What comes besides, of "nan", "inf" and "-inf".
        named: The shape as it was declared, where a variant fixed some of its dims; None where it fixed none.
    """

    dtype: str | None = None
    shape: list[int | str] | None = None
    low: float | None = None
    high: float | None = None
    values: list[float] | None = None
    named: list[int | str] | None = None
    nonfinite: list[str] = field(default_factory=list)


@record
class ExportSpec:
    """Every option that shaped the file."""

    exporter: Literal["dynamo", "torchscript"] = "dynamo"
    opset: int | None = None
    max_ir: int | None = None
    single_file: bool | None = None
    optimize: bool = True


@record
class Tolerance:
    """A manual tolerance of one output: ``|actual - expected| <= atol + rtol * |expected|``, with its reason."""

    rtol: float
    atol: float
    reason: str
    expires: str | None = None


@record
class ParitySpec:
    """How outputs are judged.

    Attributes:
        budget: The k of the rule: the target may err k times as much as PyTorch itself.
        calibrations: As committed, by target.
        calibration: The one that counts on this target, under these versions; None where none does.
        rounding: The narrowest float whose rounding the target's options let in, as "float16" for TF32: outputs in
            float32 may err by as many of its units. "" for none.
    """

    budget: float = 4.0
    ties: Literal["explain", "exact"] = "explain"
    allow_nan: list[str] = field(default_factory=list)
    outputs: dict[str, Tolerance] = field(default_factory=dict)
    calibrations: dict[str, Calibration] = field(default_factory=dict)
    calibration: Calibration | None = None
    rounding: str = ""

    def budget_of(self, output: str) -> float:
        """The budget of one output: twice what benign runs of it showed, never below `budget`, and 16 at most."""
        seen = self.calibration.observed.get(output, 0.0) if self.calibration else 0.0
        return max(self.budget, min(2.0 * seen, HIGHEST))


@record
class ModelSpec:
    """One model, or one variant of it, resolved: defaults filled in, paths relative to the config's folder.

    Attributes:
        entrypoint: ``path.py:function``, ``package.module:function``, or ``path.py`` for the short form.
        reference: What builds the module before it was adapted for export, as for `entrypoint`; None where it is not.
        variants: The dims that each variant of the model fixes, by its name; empty for a model without variants.
        batch: Whether rows are independent; None: not declared, and held to it where PyTorch keeps them apart.
        time_limit: Seconds, for export and for verify.
        memory_limit: Bytes of resident memory of the worker and its children.
        declared_in: The config file, relative to the repository's root, and the model's line in it.
    """

    name: str
    entrypoint: str
    variant: str | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)
    reference: str | None = None
    input_names: list[str] | None = None
    outputs: list[str] | None = None
    cases: list[str] = field(default_factory=list)
    inputs: dict[str, InputSpec] = field(default_factory=dict)
    dims: dict[str, DimSpec] = field(default_factory=dict)
    batch: Literal["independent", "mixed"] | None = None
    contract_version: int = 1
    time_limit: float = 600.0
    memory_limit: int | None = None
    custom_ops: list[str] = field(default_factory=list)
    preprocessing: list[str] = field(default_factory=list)
    export: ExportSpec = field(default_factory=ExportSpec)
    parity: ParitySpec = field(default_factory=ParitySpec)
    declared_in: str = ""
    declared_at: int | None = None
    variants: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def fixed(self) -> dict[str, int]:
        """The dims that this variant fixes, with their sizes."""
        return self.variants.get(self.variant or "", {})


@record
class TargetSpec:
    """A provider with its options as they are deployed, and where its leg runs.

    Attributes:
        session: ONNX Runtime's config entries of a session, by their names.
        optimization: How far ONNX Runtime optimizes the graph.
        deterministic: Whether it computes in an order that does not change from run to run.
        cpu_reasons: Why operators of `cpu_ops` may run on the CPU, of those that have a reason.
        budget: How many times PyTorch's own error the target may err with options that loosen its arithmetic; None:
            what they are known to cost.
    """

    name: str
    provider: str
    options: dict[str, Any] = field(default_factory=dict)
    threads: int = 1
    session: dict[str, Any] = field(default_factory=dict)
    optimization: Literal["disabled", "basic", "extended", "all"] = "all"
    deterministic: bool = True
    budget: float | None = None
    fallback: Literal["forbid", "allow"] = "forbid"
    cpu_ops: list[str] = field(default_factory=list)
    cpu_reasons: dict[str, str] = field(default_factory=dict)
    runs_on: list[str] = field(default_factory=lambda: ["ubuntu-latest"])
    required: bool = True


@record
class LatencySpec:
    """How latency is measured and judged.

    Attributes:
        max_regression: How many times the base's time is too slow.
        budget_seconds: How long may be spent on timing one model on one target.
        shapes: The request mix: sizes by dim, each with a "weight"; empty for the example alone.
        transfers: Whether copies to and from the device are inside the clock.
        torch_compile: Whether the export times torch.compile beside eager PyTorch and ONNX Runtime.
    """

    max_regression: float = 1.1
    budget_seconds: float = 10.0
    shapes: list[dict[str, float]] = field(default_factory=list)
    transfers: Literal["inside", "outside"] = "inside"
    torch_compile: bool = False


@record
class Pin:
    """One version that a lock file fixes, with the marker under which it does ("" for always)."""

    name: str
    version: str
    marker: str = ""
    file: str = ""
    line: int | None = None


@record
class LockSpec:
    """The lock files of the project as parsed at export, so that a leg without a checkout can compare."""

    files: dict[str, str] = field(default_factory=dict)
    """sha256 by path in the repository."""
    pins: list[Pin] = field(default_factory=list)
    drift: Literal["fail", "warn"] = "fail"


@record
class JobSpec:
    """One model with all that judges it: the artifact's ``config.json``.

    Attributes:
        models: ``name[@variant]`` of every model of the config, so that a golden that is nobody's can be told; empty
            where it is not known.
    """

    model: ModelSpec
    targets: list[TargetSpec]
    golden_dir: str = "golden"
    latency: LatencySpec = field(default_factory=LatencySpec)
    lock: LockSpec = field(default_factory=LockSpec)
    models: list[str] = field(default_factory=list)


@record
class Config:
    """The whole config file, resolved.

    Attributes:
        path: Of the file in the repository, with forward slashes.
        root: The file's folder on this machine, absolute: what the paths in the config are relative to.
    """

    path: str
    models: list[ModelSpec]
    targets: list[TargetSpec]
    golden_dir: str = "golden"
    latency: LatencySpec = field(default_factory=LatencySpec)
    lock: LockSpec = field(default_factory=LockSpec)
    root: str = ""

    def job(self, model: ModelSpec) -> JobSpec:
        """What one worker needs to know of the config."""
        return JobSpec(
            model=model,
            targets=self.targets,
            golden_dir=self.golden_dir,
            latency=self.latency,
            lock=self.lock,
            models=[f"{one.name}@{one.variant}" if one.variant else one.name for one in self.models],
        )
