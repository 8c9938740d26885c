"""What is missing on this machine, as a list of checks."""

from __future__ import annotations

import re
from pathlib import Path

from onnx_ci import lock
from onnx_ci.errors import ExitCode, OnnxCiError
from onnx_ci.records.base import record
from onnx_ci.records.environment import Environment
from onnx_ci.records.model import Config
from onnx_ci.records.result import Status

NEEDED = frozenset({"torch", "onnx", "onnxruntime", "onnxscript", "numpy"})
_MARK: dict[Status, str] = {"pass": "ok", "warn": "note", "fail": "FAIL", "error": "FAIL", "skip": "skip"}
_USED = re.compile(r"uses:\s*\S*onnx-ci(\.yml)?@|run:.*\bonnx-ci run\b")


@record
class Check:
    """One thing that was looked at."""

    name: str
    status: Status
    message: str
    hint: str = ""


def examine(
    config: Config | OnnxCiError, environment: Environment | OnnxCiError, root: Path, *, interpreter: str = ""
) -> list[Check]:
    """Looks at the config, the interpreter's packages, the providers, the lock and the workflow.

    Args:
        config: With its lock files read; or why there is none.
        environment: Of the interpreter that would run the models; or why it can't be told.
        root: The repository's folder.
        interpreter: Its path, to be shown.
    """
    checks = [_config(config)]
    if isinstance(environment, OnnxCiError):
        checks.append(Check(name="interpreter", status="error", message=str(environment), hint=environment.hint))
    else:
        named = f" ({interpreter})" if interpreter else ""
        message = f"Python {environment.python}{named} on {environment.platform}, {environment.cores} cores"
        checks.append(Check(name="interpreter", status="pass", message=message))
        checks += _packages(environment)
        if isinstance(config, Config):
            checks += _providers(config, environment)
            checks += _lock(config, environment)
    return [*checks, _workflow(root)]


def render(checks: list[Check]) -> str:
    """Shows the checks, a line each, with what to do below."""
    width = max((len(check.name) for check in checks), default=0)
    lines = []
    for check in checks:
        lines.append(f"{_MARK[check.status]:4}  {check.name:{width}}  {check.message}")
        if check.hint:
            lines.append(f"      {'':{width}}  {check.hint}")
    return "\n".join(lines)


def exit_code(checks: list[Check]) -> ExitCode:
    """1 when something is missing; a note is none."""
    return ExitCode.BROKEN if any(check.status in ("fail", "error") for check in checks) else ExitCode.PASS


def _config(config: Config | OnnxCiError) -> Check:
    if isinstance(config, OnnxCiError):
        return Check(name="config", status="fail", message=str(config), hint=config.hint)
    models, targets = (", ".join(one.name for one in many) for many in (config.models, config.targets))
    return Check(name="config", status="pass", message=f"{config.path}: models {models}; targets {targets}")


def _packages(environment: Environment) -> list[Check]:
    return [
        Check(name="packages", status=found.status, message=found.message, hint=found.hint)
        for found in lock.check_environment(environment, NEEDED)
    ]


def _providers(config: Config, environment: Environment) -> list[Check]:
    checks = []
    for target in config.targets:
        name = f"target {target.name}"
        if target.provider in environment.providers:
            checks.append(Check(name=name, status="pass", message=f"{target.provider} is available here"))
            continue
        there = ", ".join(environment.providers) or "no provider at all"
        message = f"{target.provider} is not available here (ONNX Runtime has: {there})"
        hint = f"Judge it where it is: its leg runs on {', '.join(target.runs_on)}."
        checks.append(Check(name=name, status="warn", message=message, hint=hint))
    return checks


def _lock(config: Config, environment: Environment) -> list[Check]:
    found = lock.compare(config.lock, environment, NEEDED)
    if not config.lock.files:
        message = "no lock file is named, so versions are recorded and not compared"
        return [Check(name="lock", status="warn", message=message, hint='[lock] files = ["requirements.lock"]')]
    return [Check(name="lock", status=one.status, message=one.message, hint=one.hint) for one in found]


def _workflow(root: Path) -> Check:
    folder = root / ".github" / "workflows"
    for file in sorted([*folder.glob("*.yml"), *folder.glob("*.yaml")]):
        try:
            used = _USED.search(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if used:
            message = f"{file.relative_to(root).as_posix()} runs onnx-ci"
            return Check(name="workflow", status="pass", message=message)
    return Check(name="workflow", status="warn", message="no workflow runs onnx-ci", hint="Write one: onnx-ci init")
