"""The config file as a record: found, read, checked, and with its defaults filled in."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onnx_ci.config import calibration, checks, explain, schema, variants
from onnx_ci.config.problems import ConfigError, Problem
from onnx_ci.config.source import Source, locate, read
from onnx_ci.records.calibration import CalibrationFile
from onnx_ci.records.model import (
    CPU,
    Config,
    DimSpec,
    ExportSpec,
    InputSpec,
    LatencySpec,
    LockSpec,
    ModelSpec,
    ParitySpec,
    TargetSpec,
    Tolerance,
)
from onnx_ci.records.result import label

_DEFAULT_TARGET = TargetSpec(name="cpu", provider=CPU)


def load(path: Path | None, *, cwd: Path, today: Callable[[], datetime.date] = datetime.date.today) -> Config:
    """Finds, reads and checks a config.

    The lock files are named in the result, not read: that is `onnx_ci.lock.read`.

    Args:
        path: As the user named it; None: `onnx-ci.toml`, or `[tool.onnx-ci]` in pyproject.toml, here or above.
        cwd: What `path` is relative to.
        today: For the tolerances that expire.

    Raises:
        ConfigError: With every problem at once.
        UsageError: There is no config, or there are two.
    """
    source = read(locate(path, cwd=cwd), cwd=cwd)
    try:
        root, problems, cut = explain.check(source.data)
    except RecursionError:
        raise ConfigError(source.file, [Problem(path=(), message="nests tables too deep")]) from None
    problems = [*problems, *checks.names(variants.labels(source.data), _keys(source.data, "targets"))]
    if root is not None:
        problems = [*problems, *checks.check(root, source.folder, today=today(), cut=cut)]
    if problems or root is None:
        raise ConfigError(
            source.file, [dataclasses.replace(problem, line=source.line(problem.path)) for problem in problems]
        )
    return _calibrated(_resolve(root, source), calibration.read(source.folder))


def _calibrated(config: Config, found: CalibrationFile) -> Config:
    """Hands each model, or each variant, what was committed of it."""

    def of(model: ModelSpec) -> ModelSpec:
        committed = found.models.get(label(model.name, model.variant), {})
        return dataclasses.replace(model, parity=dataclasses.replace(model.parity, calibrations=committed))

    return dataclasses.replace(config, models=[of(model) for model in config.models])


def _keys(data: dict[str, Any], table: str) -> list[str]:
    found = data.get(table)
    return list(found) if isinstance(found, dict) else []


def _resolve(root: schema.Root, source: Source) -> Config:
    return Config(
        path=source.file,
        root=str(source.folder),
        models=[spec for name, model in root.models.items() for spec in _artifacts(name, model, source)],
        targets=[_target(name, target) for name, target in root.targets.items()] or [_DEFAULT_TARGET],
        golden_dir=root.golden.dir,
        latency=LatencySpec(**dict(root.latency)),
        lock=LockSpec(files=dict.fromkeys(root.lock.files, ""), drift=root.lock.drift),
    )


def _target(name: str, target: schema.Target) -> TargetSpec:
    given = dict(target)
    allowed = given.pop("cpu_ops")
    reasons = {op: why for op, why in allowed.items() if why}
    return TargetSpec(name=name, cpu_ops=list(allowed), cpu_reasons=reasons, **given)


def _artifacts(name: str, model: schema.Model, source: Source) -> list[ModelSpec]:
    """What is exported of a model: itself, or each of its variants."""
    lines = [source.line(("models", name, "variants", at)) for at in range(len(model.variants))]
    return variants.resolve(_model(name, model, source), model.variants, lines)


def _model(name: str, model: schema.Model, source: Source) -> ModelSpec:
    return ModelSpec(
        name=name,
        entrypoint=model.entrypoint,
        kwargs=model.kwargs,
        reference=model.reference,
        input_names=model.input_names,
        outputs=model.outputs,
        cases=model.cases,
        inputs={key: InputSpec(**dict(given)) for key, given in model.inputs.items()},
        dims={key: DimSpec(**dict(dim)) for key, dim in model.dims.items()},
        batch=model.batch,
        contract_version=model.contract_version,
        time_limit=model.time_limit,
        memory_limit=model.memory_limit,
        custom_ops=model.custom_ops,
        preprocessing=model.preprocessing,
        export=ExportSpec(**dict(model.export)),
        parity=_parity(model.parity),
        declared_in=source.file,
        declared_at=source.line(("models", name)),
    )


def _parity(parity: schema.Parity) -> ParitySpec:
    return ParitySpec(
        budget=parity.budget,
        ties=parity.ties,
        allow_nan=parity.allow_nan,
        outputs={name: _tolerance(given) for name, given in parity.outputs.items()},
    )


def _tolerance(given: schema.Tolerance) -> Tolerance:
    expires = given.expires.isoformat() if given.expires else None
    return Tolerance(rtol=given.rtol, atol=given.atol, reason=given.reason, expires=expires)
