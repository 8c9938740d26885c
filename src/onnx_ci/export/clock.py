"""What each stage of a job takes: wall seconds, and the peak of resident memory up to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from onnx_ci.artifact.machine import peak_bytes
from onnx_ci.records.result import StageCost


class Stages:
    """Times stages by name; a stage that is entered twice adds up."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self.costs: dict[str, StageCost] = {}
        self._progress = progress

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """One stage, told to whoever watches when it begins."""
        self._progress(name)
        start = time.monotonic()
        try:
            yield
        finally:
            before = self.costs[name].seconds if name in self.costs else 0.0
            self.costs[name] = StageCost(seconds=round(before + time.monotonic() - start, 4), peak_bytes=peak_bytes())
