"""Which sizes are looked at: all of a short range, and the sides of every change in a long one."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onnx_ci.export.jumps import Trace, Trust, find
from onnx_ci.export.sampling import DENSE, sample
from onnx_ci.export.sizes import Range


def plain(n, operators=(("op", 1),)):
    return Trace(operators, ((float(n),),), ((n,),))


def jumps(one, trace):
    return {pair for kind in find(sample(one, trace), one.step, ["y"], Trust()) for pair in kind.pairs}


@given(least=st.integers(0, 50), count=st.integers(1, DENSE), step=st.integers(1, 8), at=st.floats(0, 1))
def test_a_short_range_is_looked_at_whole(least, count, step, at):
    low = -(-least // step) * step
    one = Range(low, low + (count - 1) * step, step, low + int(at * (count - 1)) * step)
    assert sorted(sample(one, plain)) == list(range(low, low + count * step, step))


@settings(max_examples=60, deadline=None)
@given(at=st.integers(300, 99_000))
def test_a_branch_anywhere_in_a_long_range_is_found(at):
    one = Range(1, 100_000, 1, 7)
    assert jumps(one, lambda n: plain(n, (("other", 1),)) if n > at else plain(n)) == {(at, at + 1)}


@settings(max_examples=60, deadline=None)
@given(at=st.integers(300, 99_000))
def test_a_clamp_almost_anywhere_in_a_long_range_is_found(at):
    """Right at a place of the grid it hides in the slack that patterns are given."""
    one = Range(1, 100_000, 1, 7)
    grid = [1 + round(99_999 * part / 24) for part in range(25)]
    assume(min(abs(at - place) for place in grid) > 8)
    assert jumps(one, lambda n: plain(min(n, at))) == {(at, at + 1)}


@settings(max_examples=30, deadline=None)
@given(at=st.integers(300, 90_000), step=st.sampled_from([2, 8]))
def test_a_refusal_anywhere_in_a_long_range_is_found(at, step):
    one = Range(step, 100_000 // step * step, step, step * 4)
    ((low, high),) = jumps(one, lambda n: Trace(error="no") if n > at else plain(n))
    assert low <= at < high == low + step


def test_a_long_range_is_looked_at_in_few_places():
    looks = []
    sample(Range(1, 1_000_000, 1, 7), lambda n: looks.append(n) or plain(n))
    assert len(looks) == len(set(looks)) < 200
    looks.clear()
    sample(Range(1, 1_000_000, 1, 7), lambda n: looks.append(n) or plain(n * n))
    assert len(looks) < 400


def test_the_example_and_the_ends_come_first_and_the_end_of_the_time_is_heeded():
    looks = []

    def look(n):
        looks.append(n)
        return plain(n) if len(looks) < 6 else None

    assert len(sample(Range(1, 1000, 1, 40), look)) == 5
    assert looks[:3] == [40, 1000, 1]
    assert set(looks[3:]) == {39, 41, 38} or set(looks[3:]) == {39, 41, 42}
