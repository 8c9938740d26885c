"""Whether one runner is slower than another: pairs in random order, until that can be told or the time is up.

Two sessions of one file differ by up to 1.1 % for no reason but their place in memory, and a significance test calls
that a difference in 18 of 20 trials of a tiny model. So no p-value decides: what decides is the interval of the ratio
against what is allowed, and what is allowed is never less than what a run of the base against itself shows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from onnx_ci.numerics.latency import Clock, PairRatio, Run, pair_ratio, warm_up
from onnx_ci.records.base import record

Verdict = Literal["slower", "not slower", "inconclusive"]

LEAST_ALLOWED = 0.05
"""Of the base's time, on one thread; what differs by less on a shared machine is not worth a red gate."""
LEAST_ALLOWED_THREADED = 0.15
"""Likewise on more threads, which neighbours disturb more."""
_SAMPLE_NS = 2_000_000  # a sample of a fast model is several runs, so that neither the clock nor the call is measured
_MOST_RUNS = 64
_FIRST_LOOK = 20
_MOST_ROUNDS = 4000
_WORTH_SAYING = 600.0


@record
class Samples:
    """Milliseconds a run, the n-th of each taken in one round.

    Attributes:
        again: Of a second session of the base.
        runs: How many runs one sample is the mean of.
    """

    head: list[float]
    base: list[float]
    again: list[float]
    runs: int
    warmup: int
    seconds: float


@record
class Comparison:
    """What a comparison says.

    Attributes:
        ratio: Head over base, above 1 where the head is slower; with its interval.
        control: Base over base, likewise: what this machine shows of two equal sessions.
        allowed: What the ratio may be; the whole interval below it is a pass.
        limit: Beyond which the whole interval must lie to be a fault: the same, and never less than `control` spreads.
        seconds_needed: About how long it would take to tell, when it is inconclusive; None where no time would do.
    """

    verdict: Verdict
    ratio: PairRatio
    control: PairRatio
    allowed: float
    limit: float
    samples: Samples
    seconds_needed: float | None = None


def compare(
    head: Run,
    base: Run,
    again: Run,
    *,
    max_regression: float,
    threads: int,
    budget_seconds: float,
    seed: int = 0,
    clock: Clock = time.perf_counter_ns,
) -> Comparison:
    """Times head and base in turn, with a second session of the base beside them, and judges the ratio of the pairs.

    Args:
        head: One run, synchronized at its end; likewise `base` and `again`.
        base: What it is compared with.
        again: The same as `base`, in a session of its own.
        max_regression: The ratio that the config allows.
        threads: On which they run.
        budget_seconds: For everything; a first look of twenty rounds is taken even when that takes longer.
        seed: Of the order and of the bootstrap.
        clock: Nanoseconds.

    Raises:
        ValueError: The clock is too coarse: a sample took no time at all.
    """
    start = clock()
    sampler = _Sampler([head, base, again], seed, clock)
    sampler.warm_up(budget_seconds)
    look = _FIRST_LOOK
    while True:
        spent = sampler.take(look, start, budget_seconds)
        found = judge(sampler.samples(start), max_regression, threads, seed)
        if found.verdict != "inconclusive" or spent or look >= _MOST_ROUNDS:
            return found
        look *= 2


def judge(samples: Samples, max_regression: float, threads: int, seed: int = 0) -> Comparison:
    """Judges samples that were taken: slower only where the whole interval lies beyond the limit, not slower only where
    it lies within what is allowed. A machine that differs from itself may neither blame the head nor acquit it.

    Raises:
        ValueError: There are no samples, or one took no time.
    """
    ratio = pair_ratio(samples.head, samples.base, seed=seed)
    control = pair_ratio(samples.base, samples.again, seed=seed)
    least = LEAST_ALLOWED if threads == 1 else LEAST_ALLOWED_THREADED
    allowed = max(max_regression, 1.0 + least)
    limit = max(allowed, control.high, 1.0 / control.low)
    if ratio.low > limit:
        verdict: Verdict = "slower"
    else:
        verdict = "not slower" if ratio.high <= allowed else "inconclusive"
    blurred = ratio.low > allowed  # by the machine itself, which no time mends
    needed = _seconds_needed(ratio, allowed, samples.seconds) if verdict == "inconclusive" and not blurred else None
    return Comparison(
        verdict=verdict,
        ratio=ratio,
        control=control,
        allowed=allowed,
        limit=limit,
        samples=samples,
        seconds_needed=needed,
    )


def weighted(parts: Sequence[tuple[float, Samples]]) -> Samples:
    """Samples of a request mix: the n-th rounds of its sizes together, each with its weight in the whole.

    Raises:
        ValueError: There is no part, or no weight.
    """
    total = sum(weight for weight, _ in parts)
    if not parts or not total > 0:
        raise ValueError("a request mix needs sizes with weights")
    rounds = min(len(part.head) for _, part in parts)

    def mixed(pick: Callable[[Samples], list[float]]) -> list[float]:
        taken = sum(weight / total * np.asarray(pick(part)[:rounds], np.float64) for weight, part in parts)
        return [float(value) for value in np.atleast_1d(taken)]

    return Samples(
        head=mixed(lambda part: part.head),
        base=mixed(lambda part: part.base),
        again=mixed(lambda part: part.again),
        runs=max(part.runs for _, part in parts),
        warmup=max(part.warmup for _, part in parts),
        seconds=sum(part.seconds for _, part in parts),
    )


class _Sampler:
    """Takes rounds, each in a random order of its own."""

    def __init__(self, runners: Sequence[Run], seed: int, clock: Clock) -> None:
        self._runners, self._clock = list(runners), clock
        self._generator = np.random.default_rng(seed)
        self._taken: list[list[float]] = [[] for _ in self._runners]
        self._runs, self._warmup = 1, 0

    def warm_up(self, budget_seconds: float) -> None:
        share = budget_seconds / len(self._runners)
        self._warmup = max(warm_up(run, share, self._clock) for run in self._runners)
        slowest = max(self._time(run, 1) for run in self._runners)
        self._runs = min(max(math.ceil(_SAMPLE_NS / max(slowest, 1.0)), 1), _MOST_RUNS)

    def take(self, rounds: int, start: int, budget_seconds: float) -> bool:
        """Goes on to so many rounds; whether the time was up before that."""
        while len(self._taken[0]) < rounds:
            for at in self._generator.permutation(len(self._runners)):
                self._taken[at].append(self._time(self._runners[at], self._runs) / 1e6)
            if len(self._taken[0]) >= _FIRST_LOOK and (self._clock() - start) / 1e9 >= budget_seconds:
                return True
        return False

    def samples(self, start: int) -> Samples:
        head, base, again = self._taken
        return Samples(
            head=head,
            base=base,
            again=again,
            runs=self._runs,
            warmup=self._warmup,
            seconds=(self._clock() - start) / 1e9,
        )

    def _time(self, run: Run, times: int) -> float:
        """Nanoseconds a run."""
        begin = self._clock()
        for _ in range(times):
            run()
        return (self._clock() - begin) / times


def _seconds_needed(ratio: PairRatio, limit: float, seconds: float) -> float | None:
    """An interval narrows with the root of the pairs; None where that many are not worth anybody's time."""
    distance, half = abs(ratio.median - limit), (ratio.high - ratio.low) / 2
    if not distance > 0:
        return None
    times = max(half / distance, 1.0)
    needed = seconds * times * times * 1.5
    return needed if needed <= _WORTH_SAYING else None
