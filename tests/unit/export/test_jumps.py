"""Where sizes change their steps: branches, clamps and roundings are found, what is regular is not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnx_ci.export.jumps import Kind, Trace, Trust, choose, events, find, fitting


def table(size, lowest=1, highest=130, operators=lambda n: (("op", 1),)):
    """Traces of a forward with one inner size, which is also the output's."""
    return {
        n: Trace(operators(n), ((float(size(n)),),) * len(operators(n)), ((int(size(n)),),))
        for n in range(lowest, highest + 1)
    }


def found(size, **more):
    return find(table(size, **more), 1, ["y"], Trust())


def pairs(kinds):
    return {pair for kind in kinds for pair in kind.pairs}


def chosen(size, example=64, known=(), most=4, **more):
    return sorted(choice.size for choice in choose(found(size, **more), [example, *known], example, most))


@given(slope=st.integers(-9, 9), start=st.integers(-99, 99), power=st.integers(1, 2))
def test_even_growth_is_no_jump(slope, start, power):
    assert found(lambda n: slope * n**power + start) == []


@pytest.mark.parametrize("size", [lambda n: n**3, lambda n: n * (n - 1) // 2, lambda n: 7])
def test_products_of_sizes_are_no_jump(size):
    assert found(size) == []


@given(at=st.integers(4, 120), before=st.integers(0, 3), after=st.integers(4, 9))
def test_a_change_of_slope_is_found_where_it_is(at, before, after):
    kinds = found(lambda n: before * n if n <= at else before * at + after * (n - at))
    assert pairs(kinds) == {(at, at + 1)}


@given(at=st.integers(4, 120), by=st.integers(2, 50))
def test_a_single_jump_is_told_once(at, by):
    assert pairs(found(lambda n: n if n <= at else n + by)) == {(at, at + 1)}


@given(at=st.integers(4, 120))
def test_a_clamp_is_found(at):
    assert pairs(found(lambda n: min(n, at))) == {(at, at + 1)}


@given(stride=st.integers(2, 40), offset=st.integers(0, 39))
def test_a_stride_is_one_pattern_with_the_pair_next_to_the_example(stride, offset):
    size = lambda n: (n + offset) // stride  # noqa: E731
    kinds = found(size)
    places = {(n, n + 1) for n in range(1, 130) if size(n) != size(n + 1)}
    assert len(kinds) <= 3
    assert pairs(kinds) <= places
    near = choose(kinds, [], 64, 2)
    if len(places) > 3:
        (first, second) = sorted(choice.size for choice in near)
        assert size(first) != size(second)
        assert min(abs(first - 64) for first, _ in places) == abs(first - 64)


def test_strides_within_strides_need_one_pair():
    def numbers(n):
        return tuple((float(-(-n // 2**k)),) for k in range(1, 6))

    names = tuple((f"conv{k}", 1) for k in range(1, 6))
    kinds = find({n: Trace(names, numbers(n), ((-(-n // 32),),)) for n in range(32, 257)}, 1, ["y"], Trust())
    assert len(kinds) == 5
    assert sorted(choice.size for choice in choose(kinds, [64], 64, 4)) == [65]


def test_both_sides_of_a_half_that_is_rounded_are_chosen():
    sizes = chosen(lambda n: round(n * 4 / 48), example=48)
    halves = {n for n in range(1, 131) if (n * 4 / 48) % 1 == 0.5}
    down = {n for n in halves if round(n / 12) < n / 12}  # to the even number below: a rounding up differs here
    assert set(sizes) & down
    assert set(sizes) & (halves - down)
    assert len(sizes) == 4


def test_a_scale_of_one_over_the_size_is_no_jump_and_a_constant_that_changes_is():
    scales = {n: Trace((("mul", 1),), ((1 / n,),), ((3,),)) for n in range(1, 60)}
    assert find(scales, 1, ["y"], Trust()) == []
    scales = {n: Trace((("mul", 1),), ((0.3 if n > 20 else 0.7,),), ((3,),)) for n in range(1, 60)}
    assert pairs(find(scales, 1, ["y"], Trust())) == {(20, 21)}


def test_other_operators_are_a_branch_of_the_same_number_or_of_more():
    for other in ((("relu", 1),), (("op", 1), ("relu", 1))):
        kinds = found(lambda n: n, operators=lambda n, other=other: other if n > 4 else (("op", 1),))
        assert pairs(kinds) == {(4, 5)}
        assert "forward runs other operators at {dim} 4 than at 5" in kinds[0].pairs[4, 5]


def test_a_loop_over_the_size_is_regular():
    assert found(lambda n: 3, operators=lambda n: (("op", 1),) * (2 * n + 1)) == []


def test_a_size_that_is_refused_is_told_first_and_once():
    traces = {n: table(lambda n: n)[n] if n <= 64 or n % 2 else Trace(error="no") for n in range(1, 130)}
    first, *_ = find(traces, 1, ["y"], Trust())
    assert first.rank == 0
    assert [choice.size for choice in choose([first], [64, 65], 9, 4)] == [66]
    assert first.pairs[65, 66] == "forward takes {dim} 65 and refuses 66"
    assert first.pairs[66, 67] == "forward takes {dim} 67 and refuses 66"


def test_sizes_that_were_not_looked_at_break_the_series():
    traces = {n: trace for n, trace in table(lambda n: min(n, 50)).items() if n not in (49, 50, 51)}
    assert find(traces, 1, ["y"], Trust()) == []


def test_what_hangs_on_the_data_is_not_looked_at():
    noise = table(lambda n: n * 7919 % 13)
    assert find(noise, 1, ["y"], Trust())
    assert find(noise, 1, ["y"], Trust(numbers=False, outputs=False)) == []


def test_known_sizes_cost_nothing_and_the_limit_holds():
    kinds = [Kind(1, {(at, at + 1): f"{{dim}} {at}"}) for at in (10, 20, 30)]
    assert choose(kinds, [10, 11, 21], 12, 1) == choose(kinds, [10, 11, 21], 12, 2)
    assert [choice.size for choice in choose(kinds, [10, 11, 21], 12, 1)] == [20]
    assert len(choose(kinds, [], 12, 5)) == 4


def test_pairs_that_do_not_fit_are_left_out():
    kind = fitting(Kind(1, {(10, 11): "a", (20, 21): "b"}), lambda size: size < 20)
    assert list(kind.pairs) == [(10, 11)]
    assert choose([fitting(kind, lambda size: False)], [], 5, 4) == []


@given(st.lists(st.one_of(st.none(), st.integers(-9, 9)), max_size=60))
def test_any_series_gives_places_inside_it(values):
    for at, _ in events(values):
        assert 0 <= at < len(values) - 1
        assert values[at] is not None
        assert values[at + 1] is not None


@given(st.floats(0.05, 3.0))
def test_a_fraction_of_the_size_gives_few_kinds(scale):
    assert len(found(lambda n: math.floor(n * scale), highest=260)) <= 8
