"""Truth and verdict side by side: what brute force finds of a drawn module, and what onnx-ci says of it."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onnx_ci.worker.launch import Workers
from tests.rules.projects import Stage
from tests.shapes import truth
from tests.shapes.draw import Drawn, drawn
from tests.shapes.truth import Module, Truth


@dataclass(frozen=True, slots=True)
class Judged:
    """A module with its truth and onnx-ci's verdict.

    Attributes:
        status: The worst of both legs: of the export and of the verification.
        told: Its findings that are no pass, as lines.
        seconds: What onnx-ci took.
    """

    module: Drawn
    truth: Truth
    status: str
    told: list[str]
    seconds: float

    @property
    def passed(self) -> bool:
        return self.status in ("pass", "warn", "skip")

    @property
    def missed(self) -> bool:
        """Broken, and let through."""
        return self.passed and not self.truth.healthy

    @property
    def alarmed(self) -> bool:
        """Healthy, and failed."""
        return self.truth.healthy and not self.passed

    def shown(self) -> str:
        """All that is needed to look into it."""
        lines = [f"{self.module.name}: truth {self.truth.kind} {self.truth.said}; verdict {self.status}", *self.told]
        return "\n".join([*lines, self.module.config, self.module.model])


def usable(seed: int, number: int) -> tuple[Drawn, Module, truth.Answers, Truth | None] | None:
    """A drawn module with its answers; None where PyTorch refuses it everywhere, or gives what is no number."""
    module = Module(made := drawn(seed, number))
    answers, refused = module.answers()
    if not answers or not all(np.isfinite(one).all() for one in answers.values()):
        return None
    return made, module, answers, refused


class Judge:
    """onnx-ci with its servers running, to be asked about one module after the other."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def judge(self, seed: int, number: int) -> Judged | None:
        """Both for one module; None where it is not usable."""
        found = usable(seed, number)
        if found is None:
            return None
        made, module, answers, refused = found
        room = self._stage.room.parent / made.name
        made.write(room / "project")
        try:
            start = time.monotonic()
            played = self._stage.play(room / "project", room / "out")
            seconds = time.monotonic() - start
            statuses = {result.status for result in played.results}
            status = next(one for one in ("error", "fail", "warn", "pass", "skip") if one in statuses)
            known = refused or _truth(module, answers, room)
            return Judged(made, known, status, played.told("fail", "error", "warn"), seconds)
        finally:
            self._stage.known.clear()
            shutil.rmtree(room)
            shutil.rmtree(self._stage.room.with_name("exported"), ignore_errors=True)


def _truth(module: Module, answers: truth.Answers, room: Path) -> Truth:
    """Of the file that ships; where none came, of the one that a plain export gives."""
    shipped = room / "out" / "artifacts" / "model" / "model.onnx"
    if shipped.exists():
        return _apart(module, answers, shipped)
    stopped = module.export_plainly(room / "plain.onnx")
    return Truth("stopped", stopped, 1.0) if stopped else _apart(module, answers, room / "plain.onnx")


def _apart(module: Module, answers: truth.Answers, file: Path) -> Truth:
    """Found by a child, since a file can end the process that runs it."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=lambda: there.send(truth.judge(module, answers, file)))
    child.start()
    there.close()
    try:
        return here.recv()  # type: ignore[no-any-return] # a Truth, sent above
    except EOFError:
        return Truth("fails", "ONNX Runtime ends the process", 1.0)
    finally:
        child.join()
        here.close()


@contextmanager
def judging(folder: Path) -> Iterator[Judge]:
    """A judge that works in a folder of its own."""
    room = folder / "room"
    room.mkdir(parents=True)
    python = Path(sys.executable)
    with ExitStack() as stack:
        exporters = stack.enter_context(Workers(python, folder=room, environment=os.environ, preload=["torch", "warm"]))
        verifiers = stack.enter_context(Workers(python, folder=room, environment=os.environ, preload=["verify"]))
        yield Judge(Stage(room, exporters, verifiers))
