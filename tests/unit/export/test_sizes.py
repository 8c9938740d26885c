"""Sizes at the edges of dims: in range, within the budget, none twice."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import given
from hypothesis import strategies as st

from onnx_ci.export.affordable import FREE_FLOPS, MOST_BYTES
from onnx_ci.export.sizes import MOST_CASES, Range, boundaries, example, mixed
from onnx_ci.records.model import DimSpec

IMAGE = {"images": ["batch", 3, "height", "width"]}
BASE = {"batch": 2, "height": 24, "width": 40}


def plans(ranges, base=BASE, shapes=IMAGE, known=(), width=4):
    made, notes = boundaries(ranges, base, shapes, dict.fromkeys(shapes, width), known)
    return {plan.name: plan for plan in made}, notes


def dims(plan, *names):
    return tuple(plan.dims[name] for name in names)


def test_each_dim_alone_at_its_ends_and_one_off():
    made, notes = plans({"batch": Range(1, 8, 1, 2), "height": Range(16, 64, 1, 24), "width": Range(16, 64, 1, 40)})
    assert notes == []
    assert {name: dims(plan, "batch", "height", "width") for name, plan in made.items()} == {
        "all-min": (1, 16, 16),
        "all-max": (8, 64, 64),
        "batch-min": (1, 24, 40),
        "batch-max": (8, 24, 40),
        "batch-off": (3, 24, 40),
        "height-min": (2, 16, 40),
        "height-max": (2, 64, 40),
        "height-off": (2, 25, 40),
        "width-min": (2, 24, 16),
        "width-max": (2, 24, 64),
        "width-off": (2, 24, 41),
        "height-width-swapped": (2, 40, 24),
    }


def test_multiples_are_kept():
    ranges = {"height": Range.of((10, 100), DimSpec(min=10, max=100, multiple_of=8), 24)}
    made, _ = plans(ranges)
    assert [made[name].dims["height"] for name in ("height-min", "height-max", "height-off")] == [16, 96, 32]


def test_one_off_goes_down_where_there_is_no_room_above():
    made, _ = plans({"batch": Range(1, 2, 1, 2)})
    assert [plan.dims["batch"] for plan in made.values()] == [
        1
    ]  # the minimum is the one below; the maximum the example


def test_a_dim_without_an_end_is_tried_beyond_twice_the_example():
    made, _ = plans({"batch": Range(1, None, 1, 2)})
    assert made["batch-max"].dims["batch"] == 5
    assert "no maximum" in made["batch-max"].why


def test_size_zero_only_where_it_is_declared():
    assert Range.of((0, 4), DimSpec(), 2).min == 1
    assert Range.of((0, 4), DimSpec(min=0, max=4), 2).min == 0


def test_sizes_that_exist_are_not_made_again():
    made, _ = plans({"batch": Range(1, 8, 1, 2)}, known=[BASE, BASE | {"batch": 8}])
    assert sorted(made) == ["batch-min", "batch-off"]


def test_swapping_needs_both_ranges_to_allow_it():
    made, _ = plans({"height": Range(16, 30, 1, 24), "width": Range(16, 64, 1, 40)})
    assert "height-width-swapped" not in made


def test_a_maximum_over_the_budget_is_cut_and_says_so():
    made, _ = plans({"batch": Range(1, 10**9, 1, 2)})
    size = made["batch-max"].dims["batch"]
    assert 100 < size < 10**9
    assert size * 3 * 24 * 40 * 4 <= MOST_BYTES
    assert "short of its maximum 1000000000" in made["batch-max"].why


def test_a_long_sequence_is_cut_by_the_square_of_its_length():
    shapes = {"ids": ["batch", "time"]}
    made, _ = plans(
        {"batch": Range(1, 32, 1, 2), "time": Range(1, 100_000, 1, 12)}, {"batch": 2, "time": 12}, shapes, width=8
    )
    assert 1000 < made["time-max"].dims["time"] < 4000
    batch, time = dims(made["all-max"], "batch", "time")
    assert batch * time * time <= 1 << 24
    assert batch == 32
    assert "time less" in made["all-max"].why


def test_a_large_example_sets_its_own_measure():
    made, _ = plans({"time": Range(16_000, 64_000, 1, 20_000)}, {"time": 20_000}, {"wave": [1, "time"]})
    assert made["time-max"].dims["time"] == 64_000


def test_many_dims_end_at_the_limit_with_a_note():
    names = [f"d{at}" for at in range(12)]
    made, notes = plans(
        {name: Range(1, 9, 1, 4) for name in names}, dict.fromkeys(names, 4), {name: [name] for name in names}
    )
    assert len(made) == MOST_CASES
    assert notes
    assert "left out" in notes[0]


@given(
    least=st.integers(0, 50),
    length=st.integers(0, 10_000),
    step=st.integers(1, 9),
    at=st.floats(0, 1),
)
def test_every_size_is_in_its_range(least, length, step, at):
    first, last = -(-least // step), (least + length) // step
    if last < max(first, 1):
        return
    middle = max(first, 1) + int(at * (last - max(first, 1)))
    dim = DimSpec(min=least, max=least + length, multiple_of=step)
    one = Range.of((least, least + length), dim, middle * step)
    made, _ = plans({"time": one}, {"time": middle * step}, {"x": ["time", 5]})
    assert all(one.holds(plan.dims["time"]) for plan in made.values())


def test_an_examples_sizes_are_distinct_and_no_static_size():
    shapes = {"images": ["batch", 3, "height", "width"], "ids": ["batch", "time"], "two": [2]}
    chosen = example({name: DimSpec() for name in ("batch", "height", "width", "time")}, {3, 2}, shapes)
    assert len(set(chosen.values())) == 4
    assert not set(chosen.values()) & {0, 1, 2, 3}
    assert min(chosen["height"], chosen["width"]) >= 32


def test_an_examples_sizes_keep_range_and_multiple():
    chosen = example(
        {
            "height": DimSpec(min=32, max=512, multiple_of=32),
            "batch": DimSpec(min=1, max=1),
            "time": DimSpec(example=7),
        },
        set(),
        {"x": ["batch", 3, "height", 4], "y": ["time"]},
    )
    assert chosen["height"] % 32 == 0
    assert 32 <= chosen["height"] <= 512
    assert (chosen["batch"], chosen["time"]) == (1, 7)


@st.composite
def two_dims(draw):
    ranges = {}
    for name in ("height", "width"):
        least = draw(st.integers(0, 40))
        most = draw(st.integers(max(least, 1), 80))
        ranges[name] = Range(least, most, 1, draw(st.integers(max(least, 1), most)))
    return ranges


@given(two_dims())
def test_rectangles_both_ways_where_the_ranges_allow_them(ranges):
    base = {name: one.example for name, one in ranges.items()}
    made, _ = plans(ranges, base, {"x": [1, "height", "width"]})
    tried = [base, *(plan.dims for plan in made.values())]
    for small, large in (("height", "width"), ("width", "height")):
        possible = ranges[small].min < ranges[large].max
        assert any(dims[small] < dims[large] for dims in tried) == possible


@given(two_dims())
def test_a_size_that_no_neighbour_divides_where_one_is_near(ranges):
    base = {name: one.example for name, one in ranges.items()}
    made, _ = plans(ranges, base, {"x": [1, "height", "width", 2]})
    tried = [base, *(plan.dims for plan in made.values())]
    odd = [size for size in ranges["width"].near() if size > 1 and size % 2 and size % max(base["height"], 2)]
    if odd:
        assert any(
            dims["width"] > 1 and dims["width"] % 2 and (dims["height"] < 2 or dims["width"] % dims["height"])
            for dims in tried
        )


def test_size_zero_is_a_case_where_it_is_declared():
    made, _ = plans({"rows": Range.of((0, 9), DimSpec(min=0, max=9), 4)}, {"rows": 4}, {"x": ["rows", 3]})
    assert made["rows-min"].dims == {"rows": 0}


def test_an_example_is_well_above_a_large_minimum():
    dims = {
        "samples": DimSpec(min=400, max=16000),
        "t": DimSpec(min=16, max=512),
        "open": DimSpec(min=5000),
        "close": DimSpec(min=400, max=500),
        "step": DimSpec(min=64, max=512, multiple_of=32),
        "only": DimSpec(min=40, max=40),
    }
    chosen = example(dims, set(), {name: [1, name] for name in dims})
    assert chosen == {"samples": 801, "t": 33, "open": 10001, "close": 500, "step": 160, "only": 40}
    assert example({"t": DimSpec(min=16, max=512)}, {33}, {"x": [1, "t"]}) == {"t": 34}


class TestMixed:
    RANGES: ClassVar = {"batch": Range(1, 8, 1, 2), "width": Range(32, None, 16, 64)}
    BASE: ClassVar = {"batch": 2, "width": 64, "fixed": 7}

    def test_each_size_that_no_case_has(self) -> None:
        shapes = [{"batch": 1, "weight": 0.8}, {"batch": 8, "width": 128, "weight": 0.2}]
        plans = mixed(shapes, self.RANGES, self.BASE, [self.BASE | {"batch": 1}])
        assert [(plan.name, plan.dims) for plan in plans] == [
            ("mix-batch8-width128", {"batch": 8, "width": 128, "fixed": 7})
        ]
        assert plans[0].why == "a size of the request mix: batch 8, width 128"

    def test_none_twice_and_none_out_of_range_or_off_the_multiple(self) -> None:
        shapes = [{"batch": 4}, {"batch": 4}, {"batch": 9}, {"width": 72}, {"depth": 3}, {"weight": 1.0}]
        plans = mixed(shapes, self.RANGES, self.BASE, [self.BASE])
        assert [plan.dims["batch"] for plan in plans] == [4]


class TestOperations:
    """A model of a hundred million weights takes two hundred million operations a token."""

    SHAPES: ClassVar = {"ids": ["batch", "length"]}
    RANGES: ClassVar = {"batch": Range(1, 8, 1, 2), "length": Range(1, 128, 1, 12)}
    BASE: ClassVar = {"batch": 2, "length": 12}

    def plans(self, flops: float) -> dict[str, dict[str, int]]:
        made, _ = boundaries(self.RANGES, self.BASE, self.SHAPES, {"ids": 8}, flops=flops)
        return {plan.name: plan.dims for plan in made}

    def test_each_dim_alone_still_gets_to_its_end(self) -> None:
        plans = self.plans(2e8 * 24)
        assert plans["length-max"] == {"batch": 2, "length": 128}
        assert plans["batch-max"] == {"batch": 8, "length": 12}

    def test_an_end_is_reached_beside_smaller_others_where_sizes_are_dear(self) -> None:
        made, _ = boundaries(self.RANGES, self.BASE, self.SHAPES, {"ids": 8}, flops=1.2e9 * 24)
        plan = {plan.name: plan for plan in made}["batch-max"]
        assert plan.dims == {"batch": 8, "length": 6}
        assert plan.why == "batch at its maximum, 8; length 6, to afford it"

    def test_all_at_their_ends_is_left_where_only_one_would_get_there(self) -> None:
        assert "all-max" not in self.plans(2e8 * 24)
        assert self.plans(5e7 * 24)["all-max"] == {"batch": 8, "length": 128}
        assert self.plans(2e5 * 24)["all-max"] == {"batch": 8, "length": 128}
        assert self.plans(0.0)["all-max"] == {"batch": 8, "length": 128}

    def test_an_example_beyond_the_budget_may_be_outgrown_a_little(self) -> None:
        assert self.plans(FREE_FLOPS)["length-max"] == {"batch": 2, "length": 4 * 12}
