"""Every way in which onnx-ci stops, and the exit code of each."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a process of onnx-ci says by its exit code; 3 outranks 1, since not knowing is never a pass."""

    PASS = 0
    BROKEN = 1
    USAGE = 2
    UNKNOWN = 3
    NOTHING_MATCHED = 4


class OnnxCiError(Exception):
    """Something that stops a job: what, where and what to do next.

    Args:
        what: The fault, in one sentence.
        where: File, key or line; empty where there is none.
        hint: What to do next; empty where nothing is known to help.
        exit_code: The code of the process when nobody handles it.
    """

    exit_code: ExitCode = ExitCode.UNKNOWN

    def __init__(self, what: str, *, where: str = "", hint: str = "", exit_code: ExitCode | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class MachineError(OnnxCiError):
    """The machine refused, not the model: no space, no right to write, no memory."""


class UsageError(OnnxCiError):
    """The command line or the config asks for something that can't be."""

    exit_code = ExitCode.USAGE


class NothingMatchedError(OnnxCiError):
    """A filter (``--model``, ``--target``) matched nothing."""

    exit_code = ExitCode.NOTHING_MATCHED
