"""What the installed packages say by themselves: two runtimes at once, something missing, a version too old."""

from __future__ import annotations

from onnx_ci.lock.versions import older
from onnx_ci.records.environment import Environment
from onnx_ci.records.result import Finding, finding

MINIMUM = {"torch": "2.9", "onnx": "1.21", "onnxruntime": "1.23", "onnxscript": "0.5", "numpy": "1.26"}
"""Below these nothing was tried; the extras of our own package name the same."""

RUNTIMES = frozenset(
    {
        "onnxruntime", "onnxruntime-gpu", "onnxruntime-cann", "onnxruntime-coreml", "onnxruntime-directml",
        "onnxruntime-migraphx", "onnxruntime-noopenmp", "onnxruntime-openvino", "onnxruntime-qnn", "onnxruntime-rocm",
        "onnxruntime-silicon", "onnxruntime-training", "onnxruntime-training-cpu", "onnxruntime-vitisai",
        "onnxruntime-webgpu", "onnxruntime-windowsml", "ort-nightly", "ort-nightly-gpu", "ort-nightly-directml",
    }
)  # fmt: skip
"""Distributions that all install the module ``onnxruntime`` (onnxruntime-extensions and -genai do not)."""


def installed_runtimes(environment: Environment) -> list[str]:
    """The installed distributions that hold ONNX Runtime, sorted."""
    return sorted(RUNTIMES & environment.packages.keys())


def is_known(environment: Environment) -> bool:
    """Whether the interpreter could be asked at all."""
    return bool(environment.python)


def check_environment(environment: Environment, needed: frozenset[str]) -> list[Finding]:
    """Judges the installed packages without a lock.

    Args:
        environment: Of the interpreter that does the work.
        needed: Packages that the job needs; any build of ONNX Runtime stands for "onnxruntime".

    Returns:
        Findings of `environment.two-runtimes`, `environment.missing` and `environment.too-old`; a pass for each
        rule under which nothing was found. Nothing for an environment that could not be told: that is an error of
        its own, and not one package missing after the other.
    """
    if not is_known(environment):
        return []
    runtimes = installed_runtimes(environment)
    return [
        *_two_runtimes(environment, runtimes),
        *_missing(environment, needed, runtimes),
        *_too_old(environment, needed, runtimes),
    ]


def _two_runtimes(environment: Environment, runtimes: list[str]) -> list[Finding]:
    rule = "environment.two-runtimes"
    if len(runtimes) < 2:
        return [finding(rule, "pass", "onnxruntime", f"one ONNX Runtime: {runtimes[0]}")] if runtimes else []
    listed = " and ".join(f"{name} {environment.packages[name]}" for name in runtimes)
    return [
        finding(
            rule,
            "fail",
            "onnxruntime",
            f"{listed} are installed together: they overwrite each other's files, and which one runs is chance",
            hint=f"Uninstall all of them, then install one again: pip uninstall -y {' '.join(runtimes)}",
            data={name: environment.packages[name] for name in runtimes},
        )
    ]


def _missing(environment: Environment, needed: frozenset[str], runtimes: list[str]) -> list[Finding]:
    rule = "environment.missing"
    lacking = [name for name in sorted(needed) if _version(name, environment, runtimes) is None]
    return [
        finding(
            rule,
            "error",
            name,
            f"{name} is needed and is not installed for Python {environment.python}",
            hint=f"pip install {name}" if name != "torch" else "See https://pytorch.org/get-started/locally/",
        )
        for name in lacking
    ] or [finding(rule, "pass", "", f"all that is needed is installed: {', '.join(sorted(needed)) or 'nothing'}")]


def _too_old(environment: Environment, needed: frozenset[str], runtimes: list[str]) -> list[Finding]:
    rule, found, judged = "environment.too-old", [], []
    for name in sorted(needed & MINIMUM.keys()):
        version = _version(name, environment, runtimes)
        if version is None:
            continue
        judged.append(f"{name} {version}")
        is_older = older(version, MINIMUM[name])
        if is_older is None:
            message = f"{name} {version} is no version that can be compared; at least {MINIMUM[name]} is needed"
            found.append(finding(rule, "warn", name, message))
        elif is_older:
            message = f"{name} {version} is older than {MINIMUM[name]}, the oldest that onnx-ci works with"
            found.append(finding(rule, "fail", name, message, hint=f"pip install '{name}>={MINIMUM[name]}'"))
    if found or not judged:
        return found
    return [finding(rule, "pass", "", f"new enough: {', '.join(judged)}")]


def _version(name: str, environment: Environment, runtimes: list[str]) -> str | None:
    if name == "onnxruntime" and runtimes:
        return environment.packages[runtimes[0]]
    return environment.packages.get(name)
