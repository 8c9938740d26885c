"""Process groups: how much memory one holds, and how one ends. Standard library only; both sides use it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


class GroupMemory:
    """Resident memory of a process group.

    Finding the members means reading all of /proc, so that is done once a second; their sizes are read at each call.
    """

    def __init__(self, group: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._group, self._clock = group, clock
        self._members: list[str] = [str(group)]
        self._looked = clock()

    def resident_bytes(self) -> int | None:
        """The sum over the members, in bytes; None where the system does not tell (no /proc)."""
        if not _PROC.is_dir():
            return None
        if self._clock() - self._looked > 1.0:
            self._members = [entry for entry in os.listdir(_PROC) if entry.isdigit() and self._is_member(entry)]
            self._looked = self._clock()
        page, total = os.sysconf("SC_PAGE_SIZE"), 0
        for member in self._members:
            with suppress(OSError, ValueError, IndexError):
                total += int((_PROC / member / "statm").read_text().split()[1]) * page
        return total

    def _is_member(self, entry: str) -> bool:
        return _stat(entry)[2:3] == [str(self._group)]


def kill_group(group: int) -> None:
    """Kills every process of a group; one that is gone already is no error."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def adopt_orphans() -> None:
    """Makes this process the parent of what its workers leave behind, even in sessions of their own (Linux only)."""
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def kill_orphans(patience: float = 2.0) -> None:
    """Ends all children of this process, and theirs as they come up; for a process that has no other work under way."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and (children := _children_of(os.getpid())):
        for child in children:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, 0)


def _children_of(parent: int) -> list[int]:
    found = []
    for entry in os.listdir(_PROC) if _PROC.is_dir() else []:
        if entry.isdigit() and _stat(entry)[1:2] == [str(parent)]:
            found.append(int(entry))
    return found


def _stat(entry: str) -> list[str]:
    """State, parent, group and so on of a process; empty when it is gone."""
    try:
        # The name in parentheses may hold spaces: the fields are counted behind it.
        return (_PROC / entry / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


_CRASHES = frozenset(
    getattr(signal, name) for name in ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT") if hasattr(signal, name)
)


def crashed(status: int) -> bool:
    """Whether native code brought a process down, from what `os.waitpid` gave."""
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) in _CRASHES


def describe_exit(status: int) -> str:
    """Says how a process ended, from what `os.waitpid` gave."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        hint = " (the system may have run out of memory)" if number == signal.SIGKILL else ""
        return f"it was ended by {name}{hint}"
    return f"it ended with exit code {os.WEXITSTATUS(status)} and no result"
