from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onnx_ci.numerics.dtypes import float_dtype_named
from onnx_ci.numerics.figures import elements_beyond, measure, relative_error
from onnx_ci.numerics.order import argmax_agreement, ulp_distance

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def exact_relative_error(actual: np.ndarray, reference: np.ndarray) -> float:
    """relL2 in rational arithmetic, rounded once at the end."""
    pairs = [(Fraction(float(a)), Fraction(float(r))) for a, r in zip(actual.flat, reference.flat, strict=True)]
    error, norm = sum((a - r) ** 2 for a, r in pairs), sum(r * r for _, r in pairs)
    if error == 0:
        return 0.0
    if norm == 0:
        return math.inf
    ratio = error / norm
    shift = (ratio.numerator.bit_length() - ratio.denominator.bit_length()) // 2
    try:
        return math.ldexp(math.sqrt(float(ratio / Fraction(4) ** shift)), shift)
    except OverflowError:
        return math.inf


class TestRelativeError:
    @given(st.data())
    def test_equals_rational_arithmetic(self, data: st.DataObject) -> None:
        shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, max_side=5))
        numbers = st.floats(-1e150, 1e150).filter(lambda x: x == 0 or abs(x) > 1e-150)
        a, r = (data.draw(hnp.arrays(np.float64, shape, elements=numbers)) for _ in range(2))
        want = exact_relative_error(a, r)
        got = relative_error(a, r)
        # Squares of what is 1e-160 of the largest vanish in any sum of floats.
        assert got == pytest.approx(want, rel=1e-12, abs=1e-150) or want > 1e150

    @pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e307])
    def test_neither_overflows_nor_vanishes(self, scale: float) -> None:
        reference = np.array([3.0, -4.0]) * scale
        assert relative_error(reference * 1.25, reference) == pytest.approx(0.25, rel=1e-12)

    def test_float32_near_its_largest_number(self) -> None:
        reference = np.full(1000, 3e38, np.float32)
        assert relative_error(np.full(1000, 1.5e38, np.float32), reference) == pytest.approx(0.5)
        assert relative_error(-reference, reference) == pytest.approx(2.0)

    def test_opposite_extremes_of_float64_do_not_overflow(self) -> None:
        top = np.array([np.finfo(np.float64).max])
        assert relative_error(-top, top) == pytest.approx(2.0)

    def test_zero_reference_is_infinite_unless_equal(self) -> None:
        assert relative_error(np.array([1e-30]), np.zeros(1)) == math.inf
        assert relative_error(np.zeros(3), np.zeros(3)) == 0.0

    @pytest.mark.parametrize("shape", [(0,), (2, 0, 3), ()])
    def test_empty_and_scalar(self, shape: tuple[int, ...]) -> None:
        ones = np.ones(shape, np.float32)
        assert relative_error(ones, ones) == 0.0

    def test_shapes_are_never_broadcast(self) -> None:
        with pytest.raises(ValueError, match="shapes differ"):
            relative_error(np.ones((2, 1)), np.ones((2, 3)))

    def test_places_that_are_not_finite_are_left_to_another_layer(self) -> None:
        a, r = np.array([np.nan, np.inf, 1.5]), np.array([np.nan, 5.0, 1.0])
        assert relative_error(a, r) == pytest.approx(0.5)

    def test_many_blocks_are_one_sum(self) -> None:
        rng = np.random.default_rng(0)
        r = rng.standard_normal((3, 700_001))
        a = r + 1e-3 * rng.standard_normal(r.shape)
        assert relative_error(a, r) == pytest.approx(np.linalg.norm(a - r) / np.linalg.norm(r), rel=1e-12)


class TestUlpDistance:
    @pytest.mark.parametrize(("dtype", "bits"), [(np.float16, 16), (BFLOAT16, 16), (np.float32, 32), (np.float64, 64)])
    def test_neighbours_are_one_apart_across_zero(self, dtype: np.dtype, bits: int) -> None:
        integer = np.dtype(f"u{bits // 8}")
        ordered = [(1 << (bits - 1)) + 1, 0, 1, 2]  # the negative number nearest to zero, +0, and the next two
        values = np.array(ordered, integer).view(dtype)
        assert ulp_distance(values[:-1], values[1:]).tolist() == [1.0, 1.0, 1.0]

    def test_signed_zeros_are_equal(self) -> None:
        assert ulp_distance(np.array([0.0]), np.array([-0.0])).tolist() == [0.0]

    @given(st.data())
    def test_float32_by_counting_nextafter(self, data: st.DataObject) -> None:
        start = data.draw(st.floats(-(2.0**100), 2.0**100, width=32))
        steps = data.draw(st.integers(0, 20))
        value = np.float32(start)
        for _ in range(steps):
            value = np.nextafter(value, np.float32(np.inf))
        far = ulp_distance(np.array([start], np.float32), np.array([value], np.float32))
        assert far[0] == steps

    def test_extremes_of_float64_do_not_wrap(self) -> None:
        top = np.finfo(np.float64).max
        assert ulp_distance(np.array([top]), np.array([-top]))[0] == pytest.approx(2.0**64, rel=0.01)

    def test_big_endian_files(self) -> None:
        a = np.array([1.0, 2.0], ">f4")
        assert ulp_distance(a, np.nextafter(a.astype("<f4"), np.float32(9)).astype(">f4")).tolist() == [1.0, 1.0]

    @pytest.mark.parametrize(("one", "two"), [(np.float32, np.float64), (np.int32, np.int32)])
    def test_needs_one_float_dtype(self, one: type, two: type) -> None:
        with pytest.raises(ValueError, match="one float dtype"):
            ulp_distance(np.zeros(1, one), np.zeros(1, two))


class TestMeasure:
    def test_shows_the_worst_element_with_its_values(self) -> None:
        expected = np.arange(12, dtype=np.float32).reshape(3, 4) + 1
        actual = expected.copy()
        actual[2, 1] += 0.5
        found = measure(actual, expected, expected.astype(np.float64))
        assert found.at == [2, 1]
        assert (found.max_abs, found.expected, found.actual) == (0.5, 10.0, 10.5)
        assert found.max_rel == pytest.approx(0.05)
        assert found.worst_item_at == 2
        assert found.argmax_agreement == 1.0
        assert found.count == 12

    def test_torch_and_target_err_against_the_oracle(self) -> None:
        oracle = np.array([3.0, 4.0])
        found = measure(np.array([3.0, 4.5]), np.array([3.1, 4.0]), oracle)
        assert found.e_runtime == pytest.approx(0.1)
        assert found.e_torch == pytest.approx(0.02)
        assert found.max_abs_torch == pytest.approx(0.1)

    def test_without_an_oracle_torch_is_the_reference(self) -> None:
        found = measure(np.array([1.5], np.float32), np.array([1.0], np.float32))
        assert found.e_torch is None
        assert found.e_runtime == pytest.approx(0.5)

    def test_zero_reference_is_absolute(self) -> None:
        found = measure(np.full(4, 1e-8, np.float32), np.zeros(4, np.float32), np.zeros(4))
        assert found.absolute
        assert found.e_runtime == pytest.approx(1e-8)

    def test_zero_but_for_rounding_is_absolute(self) -> None:
        found = measure(np.full(4, 3e-8, np.float32), np.full(4, 1e-8, np.float32), np.full(4, 1e-17))
        assert found.absolute
        assert found.e_torch == pytest.approx(1e-8)

    def test_small_outputs_with_digits_stay_relative(self) -> None:
        oracle = np.array([1e-9, 2e-9])
        found = measure((oracle * 1.5).astype(np.float32), oracle.astype(np.float32), oracle)
        assert not found.absolute
        assert found.e_runtime == pytest.approx(0.5, rel=1e-6)

    def test_spread_is_one_for_a_single_element_and_the_count_for_noise(self) -> None:
        rng = np.random.default_rng(1)
        oracle = rng.standard_normal(10_000)
        noisy = oracle + 1e-6 * rng.standard_normal(10_000)
        one = oracle.copy()
        one[7] += 1e-3
        assert measure(noisy, noisy, oracle).spread == pytest.approx(10_000 / 3, rel=0.1)
        assert measure(one, one, oracle).spread == pytest.approx(1.0, rel=0.01)
        assert measure(oracle, oracle, oracle).spread == 0.0

    def test_left_out_places_count_nowhere(self) -> None:
        expected = np.ones((2, 3), np.float32)
        actual = expected.copy()
        actual[0] = 9.0
        leave_out = np.zeros((2, 3), bool)
        leave_out[0] = True
        found = measure(actual, expected, expected.astype(np.float64), leave_out=leave_out)
        assert (found.e_runtime, found.max_abs, found.count) == (0.0, 0.0, 3)

    @pytest.mark.parametrize("dtype", [np.float16, BFLOAT16, np.float32, np.float64])
    @pytest.mark.parametrize("shape", [(), (0,), (3, 0), (5,), (2, 3, 4)])
    def test_identity_in_every_dtype_and_shape(self, dtype: np.dtype, shape: tuple[int, ...]) -> None:
        array = np.random.default_rng(2).standard_normal(shape).astype(dtype)
        found = measure(array, array, array.astype(np.float64))
        assert (found.e_runtime, found.e_torch, found.max_abs, found.worst_item) == (0.0, 0.0, 0.0, 0.0)
        assert found.ulp in (None, 0.0)

    def test_items_against_a_naive_loop(self) -> None:
        rng = np.random.default_rng(3)
        oracle = rng.standard_normal((37, 11, 5)) * rng.uniform(1e-6, 1, (37, 1, 1))
        actual = oracle + 1e-3 * rng.standard_normal(oracle.shape)
        norms = np.array([np.linalg.norm(item) for item in oracle])
        mean = np.sqrt(np.mean(norms**2))
        naive = [np.linalg.norm(a - r) / max(n, mean) for a, r, n in zip(actual, oracle, norms, strict=True)]
        found = measure(actual, actual, oracle)
        assert found.worst_item == pytest.approx(max(naive), rel=1e-12)
        assert found.worst_item_at == int(np.argmax(naive))

    def test_items_that_span_blocks(self) -> None:
        oracle = np.ones((3, 400_000))
        actual = oracle.copy()
        actual[1] += 0.01
        found = measure(actual, actual, oracle)
        assert found.worst_item == pytest.approx(0.01)
        assert found.worst_item_at == 1

    def test_a_huge_wrong_value_is_infinite_not_unknown(self) -> None:
        found = measure(np.array([1e308, 1.0]), np.array([1e-3, 1.0]), np.array([1e-3, 1.0]))
        assert found.e_runtime > 1e300
        assert found.worst_item > 1e300

    @given(st.data())
    def test_scaling_everything_by_a_power_of_two_changes_no_ratio(self, data: st.DataObject) -> None:
        rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
        power = 2.0 ** data.draw(st.integers(-60, 60))
        oracle = rng.standard_normal((4, 6))
        torch = oracle.astype(np.float32)
        actual = torch + (1e-6 * rng.standard_normal(torch.shape)).astype(np.float32)
        factor = np.float32(power)
        one, two = measure(actual, torch, oracle), measure(actual * factor, torch * factor, oracle * power)
        assert (one.e_runtime, one.e_torch, one.worst_item, one.cosine) == pytest.approx(
            (two.e_runtime, two.e_torch, two.worst_item, two.cosine), rel=1e-12
        )
        assert one.at == two.at


def test_elements_beyond_counts_what_is_compared() -> None:
    reference = np.array([0.0, 0.0, 0.0, np.nan])
    assert elements_beyond(np.array([0.0, 1.0, 2.0, 5.0]), reference, 0.5) == pytest.approx(2 / 3)
    assert elements_beyond(np.zeros(0), np.zeros(0), 0.5) == 0.0


def test_argmax_agreement_by_rows() -> None:
    assert argmax_agreement(np.array([[0, 1], [1, 0]], BFLOAT16), np.array([[0, 1], [0, 1]], BFLOAT16)) == 0.5
    assert argmax_agreement(np.ones((3, 1)), np.ones((3, 1))) is None
    assert argmax_agreement(np.float32(1.0).reshape(()), np.float32(1.0).reshape(())) is None


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("float64", 53),
        ("float32", 24),
        ("float16", 11),
        ("bfloat16", 8),
        ("float8_e4m3fn", 4),
        ("float8_e5m2", 3),
        ("float8_e8m0fnu", 1),
        ("float4_e2m1fn", 2),
        ("complex64", 24),
        ("complex128", 53),
    ],
)
def test_every_float_dtype_is_known_by_its_significand(name: str, bits: int) -> None:
    kind = float_dtype_named(name)
    assert kind is not None
    assert kind.bits == bits
    assert kind.floor >= 4 * kind.step or bits < 8


@pytest.mark.parametrize("name", ["int64", "uint8", "bool", "string", "int4", "optional", "sequence(float32)"])
def test_everything_else_is_exact(name: str) -> None:
    assert float_dtype_named(name) is None


def test_what_vanishes_beside_the_inputs_does_not_overflow() -> None:
    nothing = np.full(4, 1e-200)
    found = measure(nothing, np.zeros(4), nothing, unit=1e9)
    assert (found.absolute, found.e_runtime) == (True, 0.0)
