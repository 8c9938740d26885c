"""The fork server in the user's interpreter: one fresh worker a request, watched, with its output in a log.

It imports torch and the exporter once and runs nothing multi-threaded itself: a worker forked from a process with an
OpenMP team hangs in its first parallel operator. Requests come as JSON lines on stdin, events go out on stdout; one
request at a time, since what is timed must not run beside other work. When stdin closes, the worker ends too.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import sys
import time
import traceback
from typing import Any

from onnx_ci.errors import ExitCode, MachineError, OnnxCiError
from onnx_ci.records import codec
from onnx_ci.records.messages import Event, Request
from onnx_ci.worker import verbs
from onnx_ci.worker.watch import GroupMemory, adopt_orphans, crashed, describe_exit, kill_group, kill_orphans

_POLL_SECONDS = 0.05
_MAX_LINE = 256 << 20
_MAX_LOG = 64 << 20
_PACKAGES = {"torch", "onnx", "onnxruntime", "onnxscript", "onnx_ir", "numpy", "ml_dtypes"}
"""What our side needs of the user's interpreter."""


def main(arguments: list[str]) -> None:
    """Serves until stdin closes; with "once", performs a single request in this very process (where there is no fork).

    Args:
        arguments: Any of "torch" (import torch up front), "warm" (export a tiny module once, and import what an export
            needs), "verify" (import what judging needs), "once".
    """
    events = os.dup(1)
    os.dup2(2, 1)
    try:
        if "torch" in arguments:
            _preload(warm="warm" in arguments)
        if "verify" in arguments:
            _import("onnx_ci.verify.job", "onnx_ci.verify.deployed", "onnx_ci.verify.memory", "onnxruntime")
    except ImportError as error:
        _write(events, _raised(0, error))
        return
    adopt_orphans()
    _write(events, Event(id=0, kind="ready"))
    if "once" in arguments:
        request = codec.loads(Request, sys.stdin.buffer.readline())
        _work(request, events)
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pending = b""
    while True:
        head, newline, rest = pending.partition(b"\n")
        if newline:
            pending = rest
            _serve(codec.loads(Request, head), events)
            continue
        more = os.read(0, 1 << 16)
        if not more:
            return
        pending += more


_own_threads = 1
"""torch's in this process before the server took one: what a script of the user's would have."""


def _preload(*, warm: bool) -> None:
    global _own_threads
    import torch

    _own_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    if not warm:
        return
    import torch.onnx

    from onnx_ci.export import private

    try:
        # Fills the operator registry and the exporter's lazy imports: 0.8 s that each worker then has for nothing,
        # and 0.3 s of each export.
        with private.parsed_once():
            torch.onnx.export(torch.nn.Linear(2, 2).eval(), (torch.ones(1, 2),), dynamo=True, verbose=False)
    except Exception:  # an exporter that can't do this will say so about the user's model, with its cause
        traceback.print_exc()
    _import("onnx_ci.export.job", "onnx_ci.export.second", "onnxruntime")


def _import(*names: str) -> None:
    """Imports for all workers at once what each would import again; what is missing, the worker that needs it tells."""
    with contextlib.suppress(Exception):
        for name in names:
            importlib.import_module(name)
        importlib.import_module("onnx_ci.artifact.machine").packages()


def _serve(request: Request, events: int) -> None:
    """Forks a worker for a request and relays what it says, until it ends or a limit is reached."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        _die_with_parent()
        os.close(reading)
        os.close(events)
        _work(request, writing)
    os.close(writing)
    watch = _Watch(request, pid, reading, events)
    try:
        watch.relay()
    finally:
        os.close(reading)


def _die_with_parent() -> None:
    """Ends this worker when the server is killed, where the system can (Linux)."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    except (ImportError, OSError, AttributeError):
        pass  # then it ends at its next word to the server


class _Watch:
    """What the server knows of its one worker."""

    def __init__(self, request: Request, pid: int, reading: int, events: int) -> None:
        self.request, self.pid, self.reading, self.events = request, pid, reading, events
        self.deadline = time.monotonic() + request.time_limit
        self.memory = GroupMemory(pid)
        self.finished = False
        self.status: int | None = None
        self.buffer = b""

    def relay(self) -> None:
        """Hands on what the worker says until its last word, its end, or a limit; then says how it ended.

        The pipe's end is not waited for: a child that the worker left behind holds it open.
        """
        poll = select.poll()
        poll.register(self.reading, select.POLLIN)
        poll.register(0, 0)  # nothing but the hang-up: the tool is gone
        verdict = ""
        while not (verdict or self.finished):
            ready = dict(poll.poll(_POLL_SECONDS * 1000))
            if 0 in ready:
                self._reap(killed=True)
                os._exit(0)
            if self.reading in ready:
                chunk = os.read(self.reading, 1 << 20)
                if not chunk:
                    break
                self._take(chunk)
            elif self._has_ended():
                break
            verdict = self._over_limit()
        status = self._reap(killed=bool(verdict))
        if not self.finished:
            message = verdict or describe_exit(status)
            fault = not verdict and crashed(status)
            _write(self.events, Event(id=self.request.id, kind="died", message=message, crashed=fault))

    def _take(self, chunk: bytes) -> None:
        *lines, self.buffer = (self.buffer + chunk).split(b"\n")
        for line in lines:
            self.finished = self.finished or not line.startswith(b'{"id":%d,"kind":"progress"' % self.request.id)
            _write_all(self.events, line + b"\n")

    def _over_limit(self) -> str:
        if time.monotonic() > self.deadline:
            return f"it was stopped after {self.request.time_limit:g} s (time_limit)"
        if len(self.buffer) > _MAX_LINE:
            return "it sent more than a result can hold"
        limit = self.request.memory_limit
        held = self.memory.resident_bytes() if limit else None
        if limit and held and held > limit:
            return f"it was stopped at {held / 2**20:.0f} MiB of memory (memory_limit is {limit / 2**20:.0f} MiB)"
        try:
            printed = os.stat(self.request.log).st_size
        except OSError:
            printed = 0
        return f"it printed more than {_MAX_LOG >> 20} MiB" if printed > _MAX_LOG else ""

    def _has_ended(self) -> bool:
        if self.status is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if done else None
        return self.status is not None

    def _reap(self, *, killed: bool) -> int:
        """Waits a moment for a good end, then ends all that the worker started, so that no child of it stays."""
        patience = time.monotonic() + (0.0 if killed else 2.0)
        while not self._has_ended() and time.monotonic() < patience:
            time.sleep(0.01)
        kill_group(self.pid)
        if self.status is None:
            self.status = os.waitpid(self.pid, 0)[1]
        kill_orphans()
        return self.status


def _work(request: Request, events: int) -> None:
    """Performs a request in this process, says how it went, and ends the process."""
    log = os.open(request.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)

    def progress(stage: str) -> None:
        _write(events, Event(id=request.id, kind="progress", stage=stage))

    try:
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(_own_threads)  # the server, which has one, is behind us
        payload = verbs.perform(request, progress)
        _write(events, Event(id=request.id, kind="result", payload=payload))
    except BaseException as error:  # SystemExit from user code is an answer too
        _print(error)
        _write(events, _raised(request.id, error))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _print(error: BaseException) -> None:
    """Into the log: the user's traceback behind an error that we raised, and the whole one of any other."""
    shown = error.__cause__ if isinstance(error, OnnxCiError) else error
    if shown is not None and not isinstance(shown, OSError):
        traceback.print_exception(type(shown), shown, shown.__traceback__)
    if isinstance(error, OnnxCiError):
        print(error, file=sys.stderr)


def _raised(request_id: int, error: BaseException) -> Event:
    def event(message: str, **more: Any) -> Event:
        return Event(id=request_id, kind="raised", message=message[:2000], **more)

    if isinstance(error, OnnxCiError):
        stage = "machine" if isinstance(error, MachineError) else ""
        return event(error.what, where=error.where, hint=error.hint, stage=stage, exit_code=int(error.exit_code))
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in _PACKAGES:
        package = str(error.name).partition(".")[0]
        text = f"{package} is not installed for {sys.executable}"
        return event(text, where=package, stage="package", hint=f"Install it there: pip install {package}")
    if isinstance(error, OSError) and error.strerror:
        return event(error.strerror, where=str(error.filename or ""), stage="machine", hint=_os_hint(error))
    if isinstance(error, MemoryError):
        return event("out of memory", stage="machine", hint="Use a machine with more memory.")
    if isinstance(error, KeyboardInterrupt):
        return event("it was interrupted (KeyboardInterrupt)")
    return event(f"{type(error).__name__}: {error}", internal=True, exit_code=int(ExitCode.UNKNOWN))


def _os_hint(error: OSError) -> str:
    import errno

    hints = {
        errno.ENOSPC: "The disk is full: free some space, or give another --out.",
        errno.EDQUOT: "The quota is used up: free some space, or give another --out.",
        errno.EROFS: "The folder is read-only: give another --out.",
        errno.EACCES: "The folder can't be written: change its permissions, or give another --out.",
    }
    return hints.get(error.errno or 0, "")


def _write(descriptor: int, event: Event) -> None:
    _write_all(descriptor, json.dumps(codec.encode(event), separators=(",", ":"), allow_nan=False).encode() + b"\n")


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
