"""The smallest budget with which a case passes, and what a calibration makes of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from onnx_ci.numerics import budget, figures
from onnx_ci.numerics.dtypes import float_dtype_named
from onnx_ci.records.calibration import Calibration
from onnx_ci.records.model import ParitySpec

from .conftest import Bench

KIND = float_dtype_named("float32")
assert KIND is not None


def measured(rng: np.random.Generator, times: float, error: float = 1e-4, shape=(4, 50)) -> figures.Measures:
    """A case whose target errs so many times what PyTorch errs."""
    oracle = rng.normal(size=shape)
    torch, target = ((oracle + scale * rng.normal(size=shape)).astype(np.float32) for scale in (error, times * error))
    return figures.measure(target, torch, oracle)


def calibration(**observed: float) -> Calibration:
    return Calibration(
        date="2026-12-01",
        provider="CPUExecutionProvider",
        options={},
        runs=["optimization all, 1 thread"],
        cases={"case0": "0123456789abcdef"},
        versions={},
        machine={},
        artifact="a",
        contract="c",
        observed=observed,
    )


@pytest.mark.parametrize("seed", range(8))
def test_just_above_what_is_needed_passes_and_just_below_fails(seed: int) -> None:
    """In the very sense of the rule, whichever of its three limits decides."""
    rng = np.random.default_rng(seed)
    shapes = [(4, 50), (64, 1), (3,), ()]
    cases = [measured(rng, times, shape=shapes[seed % 4]) for times in (0.5, 3.0, 12.0)]
    for at, need in enumerate(budget.needed(cases, KIND)):
        assert need > 0
        assert not budget.broken(cases[at], budget.limits(cases, KIND, need * (1 + 1e-9))[at])
        assert budget.broken(cases[at], budget.limits(cases, KIND, need * (1 - 1e-6))[at])


def test_what_lies_below_the_floor_needs_no_budget(rng: np.random.Generator) -> None:
    assert budget.needed([measured(rng, 30.0, 1e-9)], KIND) == [0.0]


def test_no_budget_is_enough_where_pytorch_does_not_err_or_nothing_is_known(rng: np.random.Generator) -> None:
    case = measured(rng, 3.0)
    exact = replace(case, e_torch=0.0, max_abs_torch=0.0, worst_item_torch=0.0)
    assert budget.needed([exact], KIND) == [math.inf]
    assert budget.needed([replace(case, e_runtime=math.nan)], KIND) == [math.inf]


@pytest.mark.parametrize(
    ("own", "seen", "budget"), [(4, 0.0, 4), (4, 1.9, 4), (4, 3.1, 6.2), (4, 9.0, 16), (20, 9.0, 20), (2, 3.0, 6)]
)
def test_the_budget_is_twice_what_was_seen_never_below_the_configs_and_never_above_16(own, seen, budget) -> None:
    spec = ParitySpec(budget=own, calibration=calibration(logits=seen))
    assert spec.budget_of("logits") == pytest.approx(budget)
    assert spec.budget_of("another") == own


def test_a_calibrated_output_may_err_more_and_says_since_when(bench: Bench, rng: np.random.Generator) -> None:
    oracle = rng.normal(size=(4, 200))
    torch, target = ((oracle + e * rng.normal(size=oracle.shape)).astype(np.float32) for e in (1e-4, 5.5e-4))
    bench.add({"y": torch}, {"y": target}, {"y": oracle})
    assert bench.statuses() == {"parity.runtime": "fail"}
    bench.spec = ParitySpec(calibration=calibration(y=3.5))
    found, (row,) = bench.judge()
    assert found["parity.runtime"].status == "pass"
    assert found["parity.runtime"].message.endswith("budget 7 (calibrated on 2026-12-01)")
    assert found["parity.runtime"].data["budget"] == 7
    assert row.note == "budget 7 (calibrated on 2026-12-01)"


def test_a_calibration_that_raises_nothing_is_not_spoken_of(bench: Bench, rng: np.random.Generator) -> None:
    y = rng.normal(size=(4, 20))
    bench.spec = ParitySpec(calibration=calibration(y=1.2))
    bench.add({"y": y.astype(np.float32)}, {"y": y.astype(np.float32)}, {"y": y})
    found, (row,) = bench.judge()
    assert "calibrated" not in found["parity.runtime"].message + row.note
