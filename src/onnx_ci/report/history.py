"""Latency over time: a JSON line per model and target and run. Shown, never gated; a file from outside like any other.

A series is what was measured under the same conditions. Another machine, version or option starts a new one: numbers
of two machines never stand in one line.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, fields
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from onnx_ci.records import codec
from onnx_ci.records.base import record
from onnx_ci.records.report import Report
from onnx_ci.records.result import EXPORT_TARGET, Result, Timing, label
from onnx_ci.report import read

SCHEMA_VERSION = 1
MOST_POINTS = 200
"""Kept of one model on one target; older ones go."""
_MOST_LINES = 20_000
_MAX_BYTES = 64 << 20
_SHOWN = 30
_BARS = "▁▂▃▄▅▆▇█"


@record
class Conditions:
    """What a latency depends on beside the file.

    Attributes:
        machine: Processor, cores and system; with the device where there is one.
        versions: Of ONNX Runtime's packages.
        options: That the provider really had, and those of the session.
    """

    machine: str
    provider: str
    threads: int
    transfers: str
    case: str
    dims: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)


@record
class Point:
    """One measured latency, in milliseconds.

    Attributes:
        date: ISO 8601, in UTC.
        run: Id of the run on GitHub; empty elsewhere.
        ratio: How many times the base's time, where that was compared.
    """

    schema_version: int
    date: str
    commit: str
    run: str
    model: str
    target: str
    artifact: str
    p50_ms: float
    p90_ms: float
    p99_ms: float
    samples: int
    conditions: Conditions
    ratio: float | None = None


@record
class Series:
    """The points of one model on one target under the conditions of the last one, oldest first.

    Attributes:
        since: Which conditions changed where it started; empty for the first.
    """

    points: list[Point]
    since: list[str] = field(default_factory=list)


def now() -> str:
    """The time by this machine's clock."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def load(path: Path) -> tuple[list[Point], list[str]]:
    """Reads the points of a file; one that is not there has none, and what is no point is left out and counted."""
    if not path.exists() and not path.is_symlink():
        return [], []
    try:
        text = read.text(path, limit=_MAX_BYTES)
    except read.UnreadableError as error:
        return [], [f"The history {path.name!r} {error}: it is begun anew."]
    found = [_point(line) for line in text.split("\n") if line.strip()]
    points = [point for point in found if point]
    odd = len(found) - len(points)
    return points, [f"The history {path.name!r}: lines that are no points were left out ({odd})."] if odd else []


def points(report: Report, *, date: str, commit: str, run: str) -> list[Point]:
    """What this run measured of ONNX Runtime."""
    return [
        _measured(result, timing, date=date, commit=commit, run=run)
        for result in report.results
        if result.target != EXPORT_TARGET
        for timing in result.latency
        if timing.runner == "onnxruntime" and all(map(_is_time, (timing.p50_ms, timing.p90_ms, timing.p99_ms)))
    ]


def joined(before: Sequence[Point], now: Sequence[Point]) -> list[Point]:
    """All points, the newest last, without those of an earlier attempt of this run, and no more than are kept."""
    again = {(one.run, one.model, one.target) for one in now if one.run}
    every = [*(one for one in before if (one.run, one.model, one.target) not in again), *now]
    left = dict.fromkeys(((one.model, one.target) for one in every), MOST_POINTS)
    kept = []
    for one in reversed(every):
        left[one.model, one.target] -= 1
        if left[one.model, one.target] >= 0:
            kept.append(one)
    return kept[:_MOST_LINES][::-1]


def text(points: Iterable[Point]) -> str:
    """The file's text, a line each."""
    return "".join(codec.dumps(one, indent=None) for one in points)


def series(points: Sequence[Point], result: Result) -> Series | None:
    """The series that a result stands in; None where nothing was measured."""
    ours = [one for one in points if (one.model, one.target) == (label(result.model, result.variant), result.target)]
    if not ours:
        return None
    current = ours[-1].conditions
    start = len(ours)
    while start and ours[start - 1].conditions == current:
        start -= 1
    since = list(_changed(ours[start - 1].conditions, current)) if start else []
    return Series(points=ours[start:][-_SHOWN:], since=since)


def sparkline(points: Sequence[Point]) -> str:
    """Medians as bars, from nothing to the largest."""
    largest = max((one.p50_ms for one in points), default=0.0)
    if not largest > 0:
        return ""
    return "".join(_BARS[min(int(one.p50_ms / largest * len(_BARS)), len(_BARS) - 1)] for one in points)


def _measured(result: Result, timing: Timing, *, date: str, commit: str, run: str) -> Point:
    environment = result.environment
    machine = f"{environment.cpu}, {environment.cores} cores, {environment.platform}"
    return Point(
        schema_version=SCHEMA_VERSION,
        date=date,
        commit=commit,
        run=run,
        model=label(result.model, result.variant),
        target=result.target,
        artifact=result.artifact or "",
        p50_ms=timing.p50_ms,
        p90_ms=timing.p90_ms,
        p99_ms=timing.p99_ms,
        samples=len(timing.samples_ms),
        ratio=_ratio(result),
        conditions=Conditions(
            machine=f"{machine}, {environment.gpu}" if environment.gpu else machine,
            provider=timing.provider,
            threads=timing.threads,
            transfers=timing.transfers,
            case=timing.case,
            dims=timing.dims,
            versions={name: one for name, one in environment.packages.items() if name.startswith("onnxruntime")},
            options=_options(result),
        ),
    )


def _ratio(result: Result) -> float | None:
    found = (one.data.get("ratio") for one in result.findings if one.rule == "latency.regression")
    return next((one for one in found if isinstance(one, float) and _is_time(one)), None)


def _options(result: Result) -> dict[str, str]:
    """The provider's options, the session's, and the variables of the process, as the leg recorded them."""
    data = next((one.data for one in result.findings if one.rule == "provider.active"), {})
    tables = [data.get(name) for name in ("options", "session", "environment")]
    found = {name: data[name] for name in ("optimization", "deterministic") if name in data}
    for table in tables:
        found |= table if isinstance(table, dict) else {}
    return {str(name): str(value) for name, value in found.items() if value is not None}


def _is_time(value: float) -> bool:
    return math.isfinite(value) and 0 < value < 1e9


def _changed(before: Conditions, now: Conditions) -> Iterator[str]:
    for name in (one.name for one in fields(Conditions)):
        old, new = getattr(before, name), getattr(now, name)
        if old != new:
            yield f"{name} {_told(old)} → {_told(new)}"


def _told(value: object) -> str:
    return ", ".join(f"{name}={one}" for name, one in value.items()) if isinstance(value, dict) else str(value)


_POINT = TypeAdapter(Point)


def _point(line: str) -> Point | None:
    try:
        value = json.loads(line)
        if not isinstance(value, dict) or value.get("schema_version") != SCHEMA_VERSION:
            return None
        point = _POINT.validate_python(value)
        codec.dumps(point)
    except (ValidationError, ValueError, RecursionError):
        return None
    times = (point.p50_ms, point.p90_ms, point.p99_ms, *([point.ratio] if point.ratio is not None else []))
    return point if all(map(_is_time, times)) else None
