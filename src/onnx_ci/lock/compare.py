"""Holds what is installed against the lock files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from onnx_ci.lock.installed import installed_runtimes, is_known
from onnx_ci.lock.versions import agree, applies
from onnx_ci.records.environment import Environment
from onnx_ci.records.model import LockSpec, Pin
from onnx_ci.records.result import Finding, finding

RULE = "environment.lock-drift"
_RUNTIME = "onnxruntime"


def compare(lock: LockSpec, environment: Environment, needed: frozenset[str]) -> list[Finding]:
    """Says of each package whether its version is a locked one.

    Only what is installed is compared: a lock covers more machines than this. A package that is not installed counts
    where the job needs it. Of several pins of a package (forks, files), any that holds here will do.

    Args:
        lock: As read; without files nothing was promised, and nothing is said.
        environment: Of the interpreter that did the work.
        needed: Packages without which the job can't do its work.

    Returns:
        A finding for each package that drifted; when none did, one that says how many agree.
    """
    if not lock.files:
        return []
    if not is_known(environment):
        return [finding(RULE, "skip", "", "not compared: what is installed could not be told")]
    compared, drifted, unread = 0, [], 0
    for name, pins in sorted(_by_name(lock.pins).items()):
        held = [(pin, applies(pin.marker, environment.markers)) for pin in pins]
        here = [pin for pin, holds in held if holds]
        unread += any(holds is None for _, holds in held)
        if not here or any(holds is None for _, holds in held):
            continue
        found = _judge(name, here, environment, lock, needed)
        compared += name in environment.packages or bool(found)
        drifted += found
    if drifted:
        return drifted
    return [_summary(lock, compared, unread)]


def _judge(
    name: str, pins: list[Pin], environment: Environment, lock: LockSpec, needed: frozenset[str]
) -> list[Finding]:
    locked = _versions(pins)
    installed = environment.packages.get(name)
    if installed is None:
        return _absent(name, pins, environment, lock) if name in needed else []
    if any(agree(pin.version, installed) for pin in pins):
        return []
    message = f"{name} is locked to {locked} ({_place(pins)}), installed is {installed}"
    return [_drift(name, pins, lock, message, installed, status=lock.drift)]


def _absent(name: str, pins: list[Pin], environment: Environment, lock: LockSpec) -> list[Finding]:
    others = {other: environment.packages[other] for other in installed_runtimes(environment)}
    locked = _versions(pins)
    if name == _RUNTIME and others:
        if any(agree(pin.version, version) for pin in pins for version in others.values()):
            return []
        other, version = sorted(others.items())[0]
        # A GPU build may well be locked elsewhere: this lock does not speak of it.
        message = f"{name} is locked to {locked} ({_place(pins)}), installed is {other} {version}"
        return [_drift(name, pins, lock, message, None, status="warn")]
    message = f"{name} is locked to {locked} ({_place(pins)}), and is not installed"
    return [_drift(name, pins, lock, message, None, status=lock.drift)]


def _drift(name: str, pins: list[Pin], lock: LockSpec, message: str, installed: str | None, status: str) -> Finding:
    first = pins[0]
    return finding(
        RULE,
        status,  # type: ignore[arg-type] # "fail" or "warn", both of them statuses
        name,
        message,
        hint=f"Install from the lock, or lock {installed or 'it'} again." if installed else "Install from the lock.",
        file=first.file or None,
        line=first.line,
        data={"locked": [pin.version for pin in pins], "installed": installed},
    )


def _summary(lock: LockSpec, compared: int, unread: int) -> Finding:
    files = ", ".join(lock.files)
    data = {"compared": compared, "pins": len(lock.pins), "unread_markers": unread}
    left_out = f"; {unread} with a marker that can't be read were left out" if unread else ""
    if compared:
        plural = "package agrees" if compared == 1 else "packages agree"
        return finding(RULE, "pass", "", f"{compared} installed {plural} with {files}{left_out}", data=data)
    what = "holds no pin" if not lock.pins else "pins nothing that is installed here"
    return finding(
        RULE,
        "warn",
        "",
        f"{files} {what}: no version was compared{left_out}",
        hint="Name the file that fixes versions, such as the output of pip freeze, pip-compile or uv lock.",
        data=data,
    )


def _by_name(pins: Iterable[Pin]) -> dict[str, list[Pin]]:
    grouped: dict[str, list[Pin]] = defaultdict(list)
    for pin in pins:
        grouped[pin.name].append(pin)
    return grouped


def _versions(pins: list[Pin]) -> str:
    return " or ".join(dict.fromkeys(pin.version for pin in pins))


def _place(pins: list[Pin]) -> str:
    first = pins[0]
    return f"{first.file}:{first.line}" if first.line else first.file
