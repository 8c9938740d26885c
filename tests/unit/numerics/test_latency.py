from __future__ import annotations

import numpy as np
import pytest

from onnx_ci.numerics.latency import interleave, pair_ratio, percentiles, sample, warm_up


class Machine:
    """A clock and runners that move it: time passes only when something runs."""

    def __init__(self) -> None:
        self.now = 0
        self.order: list[str] = []

    def clock(self) -> int:
        return self.now

    def runner(self, name: str, *milliseconds: float):
        """Takes each of the times in turn, then the last for ever."""
        left = list(milliseconds)

        def run() -> None:
            self.now += round((left.pop(0) if len(left) > 1 else left[0]) * 1e6)
            self.order.append(name)

        return run


@pytest.fixture
def machine() -> Machine:
    return Machine()


class TestWarmUp:
    def test_goes_on_until_it_no_longer_gets_faster(self, machine: Machine) -> None:
        assert warm_up(machine.runner("a", *[100.0] * 5, *[50.0] * 5, 10.0), 1000.0, machine.clock) == 20

    def test_stops_at_its_share_of_the_budget(self, machine: Machine) -> None:
        made = warm_up(machine.runner("a", *range(1000, 1, -1)), 10.0, machine.clock)
        assert made == 3
        assert machine.now <= 3.1e9

    def test_one_run_is_made_whatever_the_budget(self, machine: Machine) -> None:
        assert warm_up(machine.runner("a", 5000.0), 0.0, machine.clock) == 1

    def test_is_bounded_in_runs(self, machine: Machine) -> None:
        times = [1.0 + (n // 5) % 2 for n in range(1000)]
        assert warm_up(machine.runner("a", *times), 1e9, machine.clock, most=42) == 42


class TestSample:
    def test_fills_the_budget(self, machine: Machine) -> None:
        assert sample(machine.runner("a", 10.0), 0.5, machine.clock) == [10.0] * 50

    def test_makes_a_few_even_over_budget(self, machine: Machine) -> None:
        assert len(sample(machine.runner("a", 10_000.0), 0.5, machine.clock, least=3)) == 3

    def test_and_not_more_than_it_may(self, machine: Machine) -> None:
        assert len(sample(machine.runner("a", 0.001), 10.0, machine.clock, most=20)) == 20


class TestInterleave:
    def test_every_round_has_every_runner_once(self, machine: Machine) -> None:
        got = interleave({"a": machine.runner("a", 1.0), "b": machine.runner("b", 3.0)}, 0.4, machine.clock)
        assert set(got.samples_ms["a"]) == {1.0}
        assert set(got.samples_ms["b"]) == {3.0}
        assert len(got.samples_ms["a"]) == len(got.samples_ms["b"]) > 50
        rounds = machine.order[-2 * len(got.samples_ms["a"]) :]
        assert all({one, two} == {"a", "b"} for one, two in zip(rounds[::2], rounds[1::2], strict=True))

    def test_order_is_random_and_seeded(self) -> None:
        orders = []
        for seed in (1, 1, 2):
            machine = Machine()
            runners = {name: machine.runner(name, 1.0) for name in "ab"}
            interleave(runners, 0.2, machine.clock, seed=seed)
            orders.append(machine.order)
        assert orders[0] == orders[1] != orders[2]
        firsts = orders[0][-80::2]
        assert 10 < firsts.count("a") < 30

    def test_stays_within_the_budget(self, machine: Machine) -> None:
        interleave({"a": machine.runner("a", 20.0), "b": machine.runner("b", 30.0)}, 2.0, machine.clock)
        assert machine.now <= 2.06e9

    def test_slow_runners_still_give_a_few(self, machine: Machine) -> None:
        got = interleave({"a": machine.runner("a", 9000.0)}, 1.0, machine.clock, least=4)
        assert len(got.samples_ms["a"]) == 4

    def test_nothing_to_time(self) -> None:
        with pytest.raises(ValueError, match="no runner"):
            interleave({}, 1.0)


class TestStatistics:
    def test_percentiles(self) -> None:
        got = percentiles(list(range(101)))
        assert (got.p50, got.p90, got.p99) == (50.0, 90.0, 99.0)

    @pytest.mark.parametrize("samples", [[], [1.0, float("nan")], [float("inf")]])
    def test_percentiles_of_nothing_known_raise(self, samples: list[float]) -> None:
        with pytest.raises(ValueError, match="no samples"):
            percentiles(samples)

    def test_a_common_slowdown_cancels_in_pairs(self) -> None:
        rng = np.random.default_rng(0)
        load = rng.uniform(1, 5, 60)
        got = pair_ratio(list(1.1 * load), list(load))
        assert (got.median, got.low, got.high) == pytest.approx((1.1, 1.1, 1.1))
        assert got.pairs == 60

    def test_the_interval_holds_the_truth_nineteen_times_in_twenty(self) -> None:
        held = 0
        for seed in range(200):
            rng = np.random.default_rng(seed)
            a, b = (rng.lognormal(0, 0.1, 40) for _ in range(2))
            got = pair_ratio(list(1.2 * a), list(b), seed=seed, resamples=500)
            held += got.low <= 1.2 <= got.high
        assert held >= 180

    def test_is_seeded(self) -> None:
        rng = np.random.default_rng(1)
        a, b = (list(rng.uniform(1, 2, 20)) for _ in range(2))
        assert pair_ratio(a, b, seed=3) == pair_ratio(a, b, seed=3)

    @pytest.mark.parametrize(
        ("a", "b", "text"),
        [([1.0], [1.0, 2.0], "not pairs"), ([0.0], [1.0], "not positive"), ([], [], "no samples")],
    )
    def test_what_is_no_pairs_raises(self, a: list[float], b: list[float], text: str) -> None:
        with pytest.raises(ValueError, match=text):
            pair_ratio(a, b)
