"""What torch says of sizes while it traces: its decisions, with the user's lines."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from onnx_ci.export import private
from onnx_ci.export.places import Place, Places

_GUARD = re.compile(r"(?:eval|runtime_assert) (?P<text>(?!\[guard suppressed\]).*?) \[guard added\]")
_SYMBOL = re.compile(r"create_symbol (?P<symbol>s\d+) = \S+ for (?P<source>\S+)")


@dataclass(frozen=True, slots=True)
class Guard:
    """A decision on sizes that tracing took, and the user's line that asked for it."""

    text: str
    place: Place | None


@dataclass(slots=True)
class GuardLog:
    """What torch said of sizes while it traced.

    Attributes:
        symbols: By FX symbol, the argument's axis that it stands for: ``L['x'].size()[0]``.
        violations: torch's own sentences on declared ranges that do not hold, one list a capture.
    """

    guards: list[Guard] = field(default_factory=list)
    symbols: dict[str, str] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)


@contextlib.contextmanager
def listen(log: GuardLog, places: Places) -> Iterator[None]:
    """Keeps what torch's shape environment logs, and nothing of it on the screen."""
    logger = logging.getLogger(private.GUARD_LOGGER)
    before = (logger.level, logger.propagate, list(logger.handlers))
    logger.handlers[:] = [_Listener(log, places)]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.setLevel(before[0])
        logger.propagate = before[1]
        logger.handlers[:] = before[2]


class _Listener(logging.Handler):
    def __init__(self, log: GuardLog, places: Places) -> None:
        super().__init__(logging.INFO)
        self._log = log
        self._places = places

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if made := _SYMBOL.search(text):
            self._log.symbols[made["symbol"]] = made["source"]
        elif guard := _GUARD.search(text):
            place = (
                self._places.of_frame(sys._getframe())
                or self._places.deepest(private.dynamo_frames())
                or self._places.of_stack_text(private.node_stack())
            )
            self._log.guards.append(Guard(guard["text"], place))
