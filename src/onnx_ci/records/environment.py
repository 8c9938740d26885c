"""The conditions of a result: versions, machine, threads, and the lock it was built under."""

from __future__ import annotations

from dataclasses import field

from onnx_ci.records.base import record


@record
class LockFile:
    """A lock file by its path in the repository and its digest."""

    path: str
    sha256: str


@record
class Environment:
    """What a number depends on, as seen in the interpreter that made it.

    Attributes:
        packages: Version by normalized distribution name: all that are installed there.
        providers: What ONNX Runtime says is available, best first; empty without ONNX Runtime.
        markers: The environment of PEP 508 markers there, so that the tool can evaluate a lock for it.
        cpu: The processor's model name.
        cores: Cores that this process may use.
        gpu: Name of the first device and its driver, where a tool there tells it.
    """

    onnx_ci: str
    python: str
    platform: str
    cpu: str
    cores: int
    gpu: str | None = None
    packages: dict[str, str] = field(default_factory=dict)
    providers: list[str] = field(default_factory=list)
    markers: dict[str, str] = field(default_factory=dict)
    locks: list[LockFile] = field(default_factory=list)
