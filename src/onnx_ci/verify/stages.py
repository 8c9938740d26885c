"""What each stage of a job takes: wall seconds, and the peak of resident memory up to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from onnx_ci.artifact.machine import peak_bytes
from onnx_ci.records.result import StageCost


class Stages:
    """Times stages by name; one that comes again adds up.

    Args:
        progress: Told of each stage as it begins.
    """

    def __init__(self, progress: Callable[[str], None], clock: Callable[[], float] = time.perf_counter) -> None:
        self._progress, self._clock = progress, clock
        self.costs: dict[str, StageCost] = {}

    @contextmanager
    def run(self, name: str, *, shown: str = "") -> Iterator[None]:
        """Times what happens inside, whether or not it raises; `shown` names it to who watches, `name` by default."""
        self._progress(shown or name)
        start = self._clock()
        try:
            yield
        finally:
            before = self.costs[name].seconds if name in self.costs else 0.0
            self.costs[name] = StageCost(seconds=before + self._clock() - start, peak_bytes=peak_bytes())
