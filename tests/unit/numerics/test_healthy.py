"""Healthy peculiar models, as arrays: none of them may be failed, and each has a broken sibling that must be."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Bench

F = np.float32


def in_order_mean(x: np.ndarray) -> np.ndarray:
    """A mean over the last axis as a runtime takes it: eight float32 accumulators, each in order."""
    lanes = np.add.accumulate(x.reshape(*x.shape[:-1], -1, 8), axis=-2, dtype=F)[..., -1, :]
    return (lanes.sum(-1, dtype=F) / F(x.shape[-1])).astype(F)


@pytest.mark.parametrize("size", [224, 512])
def test_global_mean_summed_in_order(bench: Bench, rng: np.random.Generator, size: int) -> None:
    pixels = rng.uniform(0, 1, (2, 8, size * size)).astype(F)
    oracle, torch = pixels.astype(float).mean(-1), pixels.mean(-1, dtype=F)
    target = in_order_mean(pixels)
    bench.add({"y": torch}, {"y": target}, {"y": oracle})
    e_runtime, e_torch = bench.judge()[1][0].e_runtime, bench.judge()[1][0].e_torch
    assert e_runtime is not None
    assert e_torch is not None
    assert e_runtime > 4 * e_torch  # what makes it peculiar: PyTorch sums in pairs, which is far better
    assert bench.statuses() == {}
    bench.add({"y": torch}, {"y": torch * F(1.0001)}, {"y": oracle})
    assert bench.statuses() == {"parity.runtime": "fail"}


def test_ratio_of_fifteen_under_the_floor(bench: Bench, rng: np.random.Generator) -> None:
    oracle = rng.standard_normal((4, 10))
    torch, target = ((oracle * (1 + e * rng.standard_normal(oracle.shape))) for e in (8e-8, 1.2e-6))
    bench.add({"y": torch.astype(F)}, {"y": target.astype(F)}, {"y": oracle})
    assert bench.statuses() == {}


def test_mathematically_zero(bench: Bench, rng: np.random.Generator) -> None:
    for seed in range(6):
        x = np.random.default_rng(seed).standard_normal((3, 100))
        oracle = (x - x.mean(-1, keepdims=True)).sum(-1)
        torch, target = (noise * rng.standard_normal(3) for noise in (6e-7, 1e-6))
        bench.add({"y": (torch * (seed % 2)).astype(F)}, {"y": target.astype(F)}, {"y": oracle})
    assert bench.statuses() == {}
    bench.add({"y": np.zeros(3, F)}, {"y": np.full(3, 2e-5, F)}, {"y": np.zeros(3)})
    assert bench.statuses() == {"parity.runtime": "warn"}
    bench.add({"y": np.zeros(3, F)}, {"y": np.full(3, 1e-3, F)}, {"y": np.zeros(3)})
    assert bench.statuses() == {"parity.runtime": "fail"}


def test_mathematically_zero_of_large_inputs(bench: Bench, rng: np.random.Generator) -> None:
    torch, target = (rng.standard_normal((4, 4)).astype(F) * F(0.05) for _ in range(2))
    bench.add({"y": torch}, {"y": target}, {"y": rng.standard_normal((4, 4)) * 1e-10}, unit=1e6)
    bench.add({"y": torch * F(0)}, {"y": target}, {"y": np.zeros((4, 4))}, unit=1e6)
    assert bench.statuses() == {}


def test_mathematically_zero_without_an_oracle_is_a_warning(bench: Bench, rng: np.random.Generator) -> None:
    torch, target = (rng.standard_normal((4, 4)).astype(F) * F(1e-7) for _ in range(2))
    bench.add({"y": torch}, {"y": target}, None)
    assert bench.statuses() == {"parity.runtime": "warn"}


def test_one_scalar_a_row_over_a_batch_of_256(bench: Bench, rng: np.random.Generator) -> None:
    for _ in range(20):
        oracle = rng.standard_normal((256, 1))
        oracle[rng.integers(0, 256, 5)] *= 1e-6  # rows near zero, whose own relative error means nothing
        torch, target = ((oracle + 3e-7 * rng.standard_normal(oracle.shape)).astype(F) for _ in range(2))
        bench.add({"y": torch}, {"y": target}, {"y": oracle})
    assert bench.statuses() == {}
    wrong = target.copy()
    wrong[7] += F(1e-3)
    bench.add({"y": torch}, {"y": wrong}, {"y": oracle})
    assert bench.statuses() == {"parity.runtime": "fail"}


def test_minus_infinity_on_both_sides(bench: Bench, rng: np.random.Generator) -> None:
    oracle = rng.standard_normal((2, 6))
    oracle[:, [2, 4]] = -np.inf
    bench.add({"y": oracle.astype(F)}, {"y": oracle.astype(F) + F(1e-7)}, {"y": oracle})
    assert bench.statuses() == {}
    wrong = oracle.astype(F)
    wrong[0, 0] += F(0.01)
    bench.add({"y": oracle.astype(F)}, {"y": wrong}, {"y": oracle})
    assert bench.statuses() == {"parity.runtime": "fail"}


def test_minus_infinity_everywhere(bench: Bench) -> None:
    bench.add({"y": np.full(4, -np.inf, F)}, {"y": np.full(4, -np.inf, F)}, {"y": np.full(4, -np.inf)})
    assert bench.statuses() == {}


@pytest.mark.parametrize("shape", [(0,), (0, 4), (2, 0, 3)])
def test_empty_results(bench: Bench, shape: tuple[int, ...]) -> None:
    boxes, keep = np.zeros(shape, F), np.zeros(shape, np.int64)
    bench.add({"box": boxes, "keep": keep}, {"box": boxes, "keep": keep}, {"box": boxes.astype(float), "keep": keep})
    assert bench.statuses() == {}
    other = np.zeros((1, *shape[1:]) if shape[0] == 0 else (*shape[:-1], 9), F)
    bench.add({"box": boxes, "keep": keep}, {"box": other, "keep": keep}, {"box": boxes.astype(float), "keep": keep})
    assert bench.statuses() == {"parity.shape": "fail"}


def test_std_over_a_dim_of_one(bench: Bench) -> None:
    nan = np.full((1, 3), np.nan, F)
    bench.add({"y": nan}, {"y": nan}, {"y": nan.astype(float)}, origin="boundary")
    assert bench.statuses() == {"parity.reference-nan": "warn"}


def test_positions_whose_error_grows_with_their_number(bench: Bench, rng: np.random.Generator) -> None:
    for length in (10, 100, 1000, 5000):
        angle = np.arange(length)[:, None] * 10000.0 ** (-np.arange(8) / 8)
        oracle = np.sin(angle)
        torch, target = (np.sin(angle * (1 + 1e-7 * rng.standard_normal(angle.shape))).astype(F) for _ in range(2))
        bench.add({"y": torch}, {"y": target}, {"y": oracle})
    assert bench.statuses() == {}
    bench.add({"y": torch}, {"y": np.roll(torch, 1, axis=0)}, {"y": oracle})
    assert "fail" in bench.statuses().values()


def test_exponential_of_large_numbers(bench: Bench, rng: np.random.Generator) -> None:
    x = rng.uniform(190, 200, (8, 8))
    oracle = np.exp(0.1 * x)
    torch, target = (np.exp(0.1 * x * (1 + 6e-8 * rng.standard_normal(x.shape))).astype(F) for _ in range(2))
    bench.add({"y": torch}, {"y": target}, {"y": oracle})
    assert bench.statuses() == {}


def test_big_pixels_whose_sums_cancel(bench: Bench, rng: np.random.Generator) -> None:
    oracle = rng.uniform(-400, 400, (1, 8, 16, 16))
    oracle[0, 0, 0, :4] = 1e-6  # relative errors near zero are huge, and mean nothing
    torch, target = ((oracle + 3e-5 * rng.standard_normal(oracle.shape)).astype(F) for _ in range(2))
    bench.add({"y": torch}, {"y": target}, {"y": oracle})
    assert bench.statuses() == {}


@pytest.mark.parametrize("cases", [1, 4, 12])
def test_a_lone_value_head_that_is_ill_conditioned(cases: int) -> None:
    # Plain "four times PyTorch's error" fails half of these: one draw says little about the size of the next.
    failed = 0
    for seed in range(200):
        rng, bench = np.random.default_rng(seed), Bench()
        for _ in range(cases):
            torch, target = ((1 + 1e-4 * rng.standard_normal(1)).astype(F) for _ in range(2))
            bench.add({"y": torch}, {"y": target}, {"y": np.ones(1)})
        failed += "fail" in bench.statuses().values()
    assert failed <= 1


def test_a_few_elements_that_divide_by_nearly_zero() -> None:
    failed = 0
    for seed in range(100):
        rng, bench = np.random.default_rng(seed), Bench()
        for _ in range(3):
            x = rng.standard_normal(500)
            torch, target = ((1 / x + 1e-7 * rng.standard_normal(500) / x**2).astype(F) for _ in range(2))
            bench.add({"y": torch}, {"y": target}, {"y": 1 / x})
        failed += "fail" in bench.statuses().values()
    assert failed <= 1


def test_reported_e_torch_is_never_nan_for_a_passing_output(bench: Bench) -> None:
    bench.add({"y": np.zeros(0, F)}, {"y": np.zeros(0, F)}, {"y": np.zeros(0)})
    figures = bench.judge()[1][0]
    assert (figures.status, figures.e_torch, figures.e_runtime) == ("pass", 0.0, 0.0)
