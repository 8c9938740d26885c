from __future__ import annotations

import numpy as np
import pytest

from onnx_ci.numerics.regression import Samples, compare, judge, weighted


class Machine:
    """A clock that moves only when something runs; the load is shared by neighbours in time."""

    def __init__(self, seed: int = 0, jitter: float = 0.02, load: float = 0.0) -> None:
        self.now = 0
        self.calls = 0
        self._random = np.random.default_rng(seed)
        self._jitter, self._load = jitter, load

    def clock(self) -> int:
        return self.now

    def runner(self, milliseconds: float):
        def run() -> None:
            self.calls += 1
            slow = 1 + self._load * (1 + np.sin(self.now / 3e9))
            self.now += round(milliseconds * slow * (1 + self._jitter * abs(self._random.normal())) * 1e6)

        return run

    def compare(self, head: float, base: float = 10.0, **more):
        asked = {"max_regression": 1.10, "threads": 1, "budget_seconds": 10.0, **more}
        return compare(self.runner(head), self.runner(base), self.runner(base), clock=self.clock, **asked)


class TestCompare:
    def test_a_third_slower_is_slower(self) -> None:
        found = Machine().compare(13.0)
        assert found.verdict == "slower"
        assert found.ratio.median == pytest.approx(1.3, abs=0.01)

    def test_the_same_is_not_slower_and_told_at_the_first_look(self) -> None:
        machine = Machine()
        found = machine.compare(10.0)
        assert found.verdict == "not slower"
        assert len(found.samples.head) == 20

    def test_faster_is_not_slower(self) -> None:
        assert Machine().compare(5.0).verdict == "not slower"

    def test_a_load_that_comes_and_goes_hits_both_alike(self) -> None:
        for seed in range(20):
            assert Machine(seed, jitter=0.05, load=1.0).compare(10.0).verdict == "not slower"
            assert Machine(seed, jitter=0.05, load=1.0).compare(13.0, budget_seconds=30.0).verdict == "slower"

    def test_at_the_limit_it_is_inconclusive_and_the_budget_is_kept(self) -> None:
        machine = Machine(jitter=0.2)
        found = machine.compare(11.0, budget_seconds=5.0)
        assert found.verdict == "inconclusive"
        assert 5.0 <= found.samples.seconds < 5.5
        assert found.samples.seconds == machine.now / 1e9

    def test_what_would_settle_it_is_more_than_was_spent(self) -> None:
        found = Machine(jitter=1.0).compare(11.9, budget_seconds=1.0)
        assert found.verdict == "inconclusive"
        assert found.seconds_needed is not None
        assert found.seconds_needed > found.samples.seconds

    def test_less_than_five_in_a_hundred_is_never_slower(self) -> None:
        assert Machine(jitter=0.001).compare(10.4, max_regression=1.0).verdict == "not slower"
        assert Machine(jitter=0.001).compare(10.6, max_regression=1.0).verdict == "slower"

    def test_nor_fifteen_on_more_than_one_thread(self) -> None:
        assert Machine(jitter=0.001).compare(11.4, max_regression=1.0, threads=2).verdict == "not slower"
        assert Machine(jitter=0.001).compare(11.6, max_regression=1.0, threads=2).verdict == "slower"

    def test_a_fast_model_is_run_several_times_a_sample(self) -> None:
        machine = Machine()
        found = machine.compare(0.1, 0.1)
        assert 15 <= found.samples.runs <= 20
        assert found.samples.head[0] == pytest.approx(0.1, rel=0.1)

    def test_a_first_look_is_taken_even_over_budget(self) -> None:
        assert len(Machine().compare(1000.0, 500.0, budget_seconds=1.0).samples.head) == 20

    def test_no_clock_no_verdict(self) -> None:
        with pytest.raises(ValueError, match="too coarse"):
            Machine().compare(0.0, 0.0)


class TestJudge:
    def test_a_machine_that_differs_from_itself_may_neither_blame_the_head_nor_acquit_it(self) -> None:
        even = [10.0, 10.1] * 20
        found = judge(_samples(head=[13.0] * 40, base=even, again=[ms / 1.5 for ms in even]), 1.1, 1)
        assert (found.allowed, found.limit) == (1.1, pytest.approx(1.5, rel=0.02))
        assert found.verdict == "inconclusive"
        assert found.seconds_needed is None  # more time shows the same

    def test_and_it_counts_in_both_directions(self) -> None:
        even = [10.0] * 40
        assert judge(_samples(head=[13.0] * 40, base=even, again=[15.0] * 40), 1.1, 1).limit == pytest.approx(1.5)

    def test_nothing_is_no_verdict(self) -> None:
        with pytest.raises(ValueError, match="no samples"):
            judge(_samples([], [], []), 1.1, 1)


class TestWeighted:
    def test_each_size_counts_by_its_weight(self) -> None:
        small, large = _samples([1.0] * 3, [1.0] * 3, [1.0] * 3), _samples([30.0] * 2, [10.0] * 2, [10.0] * 2)
        mixed = weighted([(4.0, small), (1.0, large)])
        assert mixed.head == pytest.approx([0.8 * 1 + 0.2 * 30] * 2)
        assert mixed.base == pytest.approx([0.8 * 1 + 0.2 * 10] * 2)

    def test_no_weights_no_mix(self) -> None:
        for parts in ([], [(0.0, _samples([1.0], [1.0], [1.0]))]):
            with pytest.raises(ValueError, match="weights"):
                weighted(parts)


def _samples(head: list[float], base: list[float], again: list[float]) -> Samples:
    return Samples(head=head, base=base, again=again, runs=1, warmup=5, seconds=1.0)
