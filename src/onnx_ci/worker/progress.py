"""Progress of long work: a live line for a person, grouped log lines in CI."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol, TextIO

from onnx_ci.records.result import Result

_LOG_TAIL = 4000


class Progress(Protocol):
    """What a job says while it works."""

    def begin(self, what: str) -> None:
        """A model's export, or its judging on a target, begins."""

    def stage(self, name: str) -> None:
        """It has come to a stage."""

    def end(self, result: Result, log: Path) -> None:
        """It is over."""


def progress_for(stream: TextIO, environment: Mapping[str, str], total: int) -> LiveProgress | LineProgress:
    """The live form on a terminal, lines elsewhere, grouped where the runner folds groups."""
    if stream.isatty() and not environment.get("CI"):
        return LiveProgress(stream, total)
    return LineProgress(stream, total, grouped=environment.get("GITHUB_ACTIONS") == "true")


def verdict_line(result: Result) -> str:
    """One line on a result: its status, the first finding that made it so, and how many more did."""
    reasons = [found for found in result.findings if found.status == result.status and result.status != "pass"]
    reason = f": {reasons[0].rule}: {reasons[0].message}" if reasons else ""
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return f"{result.status}{reason}"[:500].replace("\n", " ") + more


class LineProgress:
    """Plain lines; in GitHub's log, a group for each piece of work."""

    def __init__(
        self, stream: TextIO, total: int, *, grouped: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream, self._total, self._grouped, self._clock = stream, total, grouped, clock
        self._count, self._what, self._began = 0, "", 0.0

    def __enter__(self) -> LineProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def begin(self, what: str) -> None:
        """Opens the group."""
        self._count += 1
        self._what, self._began = what, self._clock()
        self._say(f"{'::group::' if self._grouped else ''}[{self._count}/{self._total}] {what}")

    def stage(self, name: str) -> None:
        """A line with the seconds since the beginning."""
        self._say(f"  {self._clock() - self._began:6.1f} s  {name}")

    def end(self, result: Result, log: Path) -> None:
        """Shows what a failed worker printed, closes the group, says the verdict."""
        if result.status in ("fail", "error"):
            self._show_log(log)
        if self._grouped:
            self._say("::endgroup::")
        self._say(f"{self._what}: {verdict_line(result)} ({self._clock() - self._began:.1f} s)")

    def _show_log(self, log: Path) -> None:
        text = log.read_text(errors="replace")[-_LOG_TAIL:].strip() if log.exists() else ""
        if not text:
            return
        token = secrets.token_hex(16)
        # What user code printed must not be read as commands to the runner.
        guard = [f"::stop-commands::{token}", f"::{token}::"] if self._grouped else ["", ""]
        self._say("\n".join(filter(None, [f"  log ({log}):", guard[0], text, guard[1]])))

    def _say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class LiveProgress:
    """A bar over all pieces of work, and a line for each that is done."""

    def __init__(self, stream: TextIO, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=Console(file=stream),
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=total)
        self._what, self._began = "", 0.0

    def __enter__(self) -> LiveProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def begin(self, what: str) -> None:
        """Names what is being done."""
        self._what, self._began = what, time.monotonic()
        self._bar.update(self._task, description=what)

    def stage(self, name: str) -> None:
        """Names the stage too."""
        self._bar.update(self._task, description=f"{self._what}: {name}")

    def end(self, result: Result, log: Path) -> None:
        """Leaves a line above the bar."""
        from rich.text import Text

        colours = {"pass": "green", "warn": "yellow", "fail": "red", "error": "red", "skip": "dim"}
        seconds = time.monotonic() - self._began
        line = Text.assemble((f"{result.status:5}", colours[result.status]), f" {self._what} ({seconds:.1f} s)")
        if result.status in ("fail", "error"):
            line.append(f"\n      {verdict_line(result)}\n      log: {log}")
        self._bar.console.print(line)
        self._bar.advance(self._task)
