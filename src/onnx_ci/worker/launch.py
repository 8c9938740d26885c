"""Starts our side in the user's interpreter, hands it requests, and validates every line that comes back."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from pydantic import TypeAdapter, ValidationError

from onnx_ci.errors import OnnxCiError, UsageError
from onnx_ci.records import codec
from onnx_ci.records.messages import Event, Request
from onnx_ci.worker.interpreter import boot_command, can_fork, user_environment
from onnx_ci.worker.watch import GroupMemory, kill_group

_EVENT = TypeAdapter(Event)
_START_SECONDS = 180.0
_GRACE_SECONDS = 20.0
_MAX_LINE = 300 << 20


class Workers:
    """A server in the user's interpreter that performs one request at a time, each in a fresh worker.

    A server that dies is started anew for the next request. Where there is no fork, each request has a process of its
    own, without the warm start.

    Args:
        python: The user's interpreter.
        preload: Arguments of `worker.serve.main`: "torch", "warm".
        folder: The project's root: the working directory of user code.
    """

    def __init__(
        self,
        python: Path,
        *,
        folder: Path,
        environment: Mapping[str, str],
        preload: Sequence[str] = (),
        fork: bool | None = None,
    ) -> None:
        self._python, self._folder, self._preload = python, folder, list(preload)
        self._environment = user_environment(environment)
        self._fork = can_fork() if fork is None else fork
        self._server: _Server | None = None
        self._next = 1

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def next_id(self) -> int:
        """A number for the next request."""
        self._next += 1
        return self._next - 1

    def perform(self, request: Request, progress: Callable[[str], None]) -> Event:
        """Runs a request to its end: "result", "raised" or "died"; never raises for what the worker did.

        Raises:
            OnnxCiError: The interpreter can't be started at all.
        """
        server = self._running()
        server.send(request)
        deadline = time.monotonic() + request.time_limit + _GRACE_SECONDS
        memory = GroupMemory(server.pid) if not self._fork and request.memory_limit else None
        try:
            while True:
                event = server.next_event(min(deadline, time.monotonic() + 0.2) if memory else deadline)
                if memory and request.memory_limit and (memory.resident_bytes() or 0) > request.memory_limit:
                    return self._died(request, f"it went over memory_limit ({request.memory_limit >> 20} MiB)")
                if isinstance(event, str):
                    if event == "waiting" and time.monotonic() < deadline:
                        continue
                    return self._died(request, event if event != "waiting" else "it gave no answer in time")
                if event.id != request.id:
                    return self._died(request, "it answered for another request")
                if event.kind != "progress":
                    return event
                progress(event.stage)
        finally:
            if not self._fork:
                self._stop()

    def _running(self) -> _Server:
        if self._server is None or not self._server.alive():
            self._stop()
            arguments = [*self._preload, *([] if self._fork else ["once"])]
            server = _Server(boot_command(self._python, arguments), self._environment, self._folder)
            server.wait_ready()
            self._server = server
        return self._server

    def _died(self, request: Request, message: str) -> Event:
        self._stop()
        return Event(id=request.id, kind="died", message=message)

    def _stop(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None


class _Server:
    """The process itself: lines in, validated events out."""

    def __init__(self, command: list[str], environment: Mapping[str, str], folder: Path) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 # closed by stop()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=dict(environment),
                cwd=folder,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"can't start {command[0]}: {error.strerror}", hint="Check --python.") from error
        self._python = command[0]
        self.pid = self._process.pid
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=_read_lines, args=(self._process.stdout, self._lines), daemon=True)
        self._reader.start()

    def alive(self) -> bool:
        return self._process.poll() is None

    def wait_ready(self) -> None:
        event = self.next_event(time.monotonic() + _START_SECONDS)
        if isinstance(event, Event) and event.kind == "ready":
            return
        printed = self.stop().strip()
        if isinstance(event, Event):
            raise OnnxCiError(event.message, hint=f"{event.hint}; or name another interpreter with --python.")
        raise UsageError(
            f"this interpreter did not start: {_telling_line(printed) or event}",
            where=self._python,
            hint="Name the interpreter that your model runs in with --python; `onnx-ci doctor` shows more.",
        )

    def send(self, request: Request) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # seen as the end of its output
            self._process.stdin.write(json.dumps(codec.encode(request)).encode() + b"\n")
            self._process.stdin.flush()

    def next_event(self, deadline: float) -> Event | str:
        """The next valid event; or a sentence when it is over; or "waiting"."""
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return "waiting"
        if not line:
            return "the server of its interpreter ended (it may have been killed for memory)"
        try:
            return _EVENT.validate_json(line)
        except ValidationError as error:
            return f"it said something that is no event: {error.errors()[0]['msg']}"

    def stop(self) -> str:
        """Ends the server and all that it started; gives back what it printed."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=2.0)
        if os.name == "posix":
            kill_group(self.pid)
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._reader.join(timeout=2.0)  # a stranger may hold the other end
            self._process.stdout.close()
        self._errors.seek(0)
        printed = self._errors.read().decode(errors="replace")
        self._errors.close()
        return printed


def _telling_line(text: str) -> str:
    """Of what an interpreter printed, what a person can read: the end of a traceback, or the first line."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    return (lines[-1] if lines[0].startswith("Traceback") else lines[0])[:120]


def _read_lines(stream: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    while line := stream.readline(_MAX_LINE):
        lines.put(line)
    lines.put(b"")
