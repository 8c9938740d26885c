"""Latency: samples and interleaved pairs, with the clock handed in; what they mean is decided elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from onnx_ci.numerics.dtypes import Floats
from onnx_ci.records.base import record

Run = Callable[[], object]
Clock = Callable[[], int]
"""Nanoseconds from any start, as `time.perf_counter_ns`."""

_STABLE = 0.05  # two blocks of warm-up whose medians differ by less: it no longer gets faster
_BLOCK = 5
_WARMUP_SHARE = 0.2


@record
class Percentiles:
    """Of samples in milliseconds."""

    p50: float
    p90: float
    p99: float


@record
class PairRatio:
    """The median of the pairs' ratios with a bootstrap interval; above 1 the first is slower."""

    median: float
    low: float
    high: float
    pairs: int
    confidence: float


@record
class Interleaved:
    """Samples of several runners, taken in turn; the n-th of each belong together.

    Attributes:
        samples_ms: By runner, equally many.
        warmup: Runs of each that were not counted.
    """

    samples_ms: dict[str, list[float]]
    warmup: int


def warm_up(run: Run, budget_seconds: float, clock: Clock = time.perf_counter_ns, *, most: int = 100) -> int:
    """Runs until two blocks of runs take equally long, within a share of the budget; gives back how many there were.

    At least one run is made, whatever the budget: the first one allocates, and is never a sample.
    """
    start, made, before = clock(), 0, math.inf
    while True:
        block = []
        for _ in range(_BLOCK):
            block.append(_timed(run, clock))
            made += 1
            if made >= most or _seconds(clock() - start) >= budget_seconds * _WARMUP_SHARE:
                return made
        now = float(np.median(block))
        if abs(now - before) <= _STABLE * now:
            return made
        before = now


def sample(
    run: Run, budget_seconds: float, clock: Clock = time.perf_counter_ns, *, least: int = 5, most: int = 1000
) -> list[float]:
    """Times single runs within a budget, in milliseconds; `least` of them are made even when they take longer."""
    start, samples = clock(), list[float]()
    while len(samples) < most and (len(samples) < least or _seconds(clock() - start) < budget_seconds):
        samples.append(_timed(run, clock) / 1e6)
    return samples


def interleave(
    runners: Mapping[str, Run],
    budget_seconds: float,
    clock: Clock = time.perf_counter_ns,
    *,
    seed: int = 0,
    least: int = 5,
    most: int = 1000,
) -> Interleaved:
    """Warms up every runner, then times them in rounds, each round in a random order of its own.

    Neighbours' load and frequency changes then hit all of them alike: unpaired medians of one model differ by 10 to
    30 % on a shared machine, the medians of pairs by 1 or 2 %.

    Args:
        runners: By name; each call is one run, synchronized at its end.
        budget_seconds: For everything, warm-up included; `least` rounds are made even when they take longer.
        clock: Nanoseconds.
        seed: Of the order.
        least: Rounds at least.
        most: Rounds at most.
    """
    if not runners:
        raise ValueError("no runner to time")
    start = clock()
    warmup = max(warm_up(run, budget_seconds / len(runners), clock) for run in runners.values())
    generator = np.random.default_rng(seed)
    names = list(runners)
    samples: dict[str, list[float]] = {name: [] for name in names}
    rounds = 0
    while rounds < most and (rounds < least or _seconds(clock() - start) < budget_seconds):
        for at in generator.permutation(len(names)):
            samples[names[at]].append(_timed(runners[names[at]], clock) / 1e6)
        rounds += 1
    return Interleaved(samples_ms=samples, warmup=warmup)


def percentiles(samples_ms: Sequence[float]) -> Percentiles:
    """p50, p90 and p99 by linear interpolation.

    Raises:
        ValueError: There are no samples, or one is not finite.
    """
    values = _checked(samples_ms)
    p50, p90, p99 = (float(np.percentile(values, q)) for q in (50, 90, 99))
    return Percentiles(p50=p50, p90=p90, p99=p99)


def pair_ratio(
    first_ms: Sequence[float],
    second_ms: Sequence[float],
    *,
    seed: int = 0,
    resamples: int = 2000,
    confidence: float = 0.95,
) -> PairRatio:
    """The median of ``first / second`` over pairs, with a percentile-bootstrap interval.

    Raises:
        ValueError: The samples are not pairs, there are none, or one is not positive and finite.
    """
    first, second = _checked(first_ms), _checked(second_ms)
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} samples are not pairs")
    if not (bool((first > 0).all()) and bool((second > 0).all())):
        raise ValueError("a sample is not positive: the clock is too coarse for this model")
    ratios = first / second
    drawn = np.random.default_rng(seed).integers(0, len(ratios), (resamples, len(ratios)))
    medians = np.median(ratios[drawn], axis=1)
    edge = (1.0 - confidence) / 2.0
    low, high = (float(np.quantile(medians, q)) for q in (edge, 1.0 - edge))
    return PairRatio(median=float(np.median(ratios)), low=low, high=high, pairs=len(ratios), confidence=confidence)


def _checked(samples: Sequence[float]) -> Floats:
    values = np.asarray(samples, np.float64)
    if not values.size or not bool(np.isfinite(values).all()):
        raise ValueError("no samples, or one that is not finite")
    return values


def _timed(run: Run, clock: Clock) -> int:
    start = clock()
    run()
    return clock() - start


def _seconds(nanoseconds: int) -> float:
    return nanoseconds / 1e9
