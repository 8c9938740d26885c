from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnx_ci.numerics.parity import judge, largest_magnitude, not_run
from onnx_ci.records.cases import Case
from onnx_ci.records.model import ParitySpec, Tolerance

from .conftest import Bench

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
F = np.float32


def three(rng: np.random.Generator, shape: tuple[int, ...] = (2, 10), noise: float = 1e-7):
    """The oracle, PyTorch and a healthy target."""
    oracle = rng.standard_normal(shape)
    torch, target = ((oracle + noise * rng.standard_normal(shape)).astype(F) for _ in range(2))
    return oracle, torch, target


class TestLayers:
    def test_no_case_at_all_is_an_error(self) -> None:
        found, figures = judge([], ParitySpec())
        assert [(one.rule, one.status) for one in found] == [("parity.names", "error")]
        assert figures == []

    def test_a_healthy_output_passes_every_layer_once(self, bench: Bench, rng: np.random.Generator) -> None:
        for _ in range(3):
            oracle, torch, target = three(rng)
            bench.add({"y": torch}, {"y": target}, {"y": oracle})
        found = bench.all_findings()
        assert {one.status for one in found} == {"pass"}
        assert [one.rule for one in found] == [
            "parity.run",
            "parity.names",
            "parity.structure",
            "parity.dtype",
            "parity.shape",
            "parity.nonfinite",
            "parity.runtime",
        ]

    def test_a_case_that_stops_in_the_runtime_fails(self, bench: Bench) -> None:
        bench.add({"y": np.ones(2, F)}, {"y": np.ones(2, F)}, {"y": np.ones(2)})
        case = Case(index=1, name="max-height", origin="boundary", why="", dims={"height": 512})
        bench.comparisons.append(not_run(case, "InvalidArgument: Got invalid dimensions"))
        finding = bench.judge()[0]["parity.run"]
        assert finding.status == "fail"
        assert "1 of 2 cases" in finding.message
        assert "case 'max-height' (height=512): InvalidArgument" in finding.message

    def test_nothing_ran(self, bench: Bench) -> None:
        bench.comparisons.append(not_run(Case(index=0, name="a", origin="user", why=""), ""))
        assert bench.statuses() == {"parity.run": "fail", "parity.names": "skip"}

    @pytest.mark.parametrize(
        ("actual", "text"), [({}, "y missing"), ({"y": np.ones(1), "z": np.ones(1)}, "z not expected")]
    )
    def test_names(self, bench: Bench, actual: dict, text: str) -> None:
        bench.add({"y": np.ones(1)}, actual)
        finding = bench.judge()[0]["parity.names"]
        assert (finding.status, text in finding.message) == ("fail", True)

    def test_no_outputs_on_either_side_fails(self, bench: Bench) -> None:
        bench.add({}, {})
        assert bench.statuses() == {"parity.names": "fail"}

    @pytest.mark.parametrize(
        ("want", "got"),
        [([np.ones(1)], np.ones(1)), (np.ones(1), None), ([np.ones(1)], [np.ones(1), np.ones(1)]), (None, [])],
    )
    def test_structure(self, bench: Bench, want: object, got: object) -> None:
        bench.add({"y": want}, {"y": got})
        assert bench.statuses()["parity.structure"] == "fail"

    def test_sequences_are_judged_item_by_item(self, bench: Bench) -> None:
        ones = [np.ones(2, F), np.ones(3, F)]
        bench.add({"y": ones}, {"y": [ones[0], ones[1] + F(0.1)]}, {"y": [one.astype(float) for one in ones]})
        found = [one for one in bench.all_findings() if one.rule == "parity.runtime"]
        assert [(one.subject, one.status) for one in found] == [("y[0]", "pass"), ("y[1]", "fail")]

    def test_empty_sequences_and_optionals_are_equal(self, bench: Bench) -> None:
        bench.add({"y": [], "z": None}, {"y": [], "z": None})
        assert bench.statuses() == {}

    @pytest.mark.parametrize("dtype", [np.float64, np.float16, BFLOAT16, np.int32, bool, object])
    def test_dtype_is_exact(self, bench: Bench, dtype: object) -> None:
        bench.add({"y": np.ones(2, F)}, {"y": np.ones(2).astype(dtype)}, {"y": np.ones(2)})
        assert bench.statuses() == {"parity.dtype": "fail", "parity.runtime": "skip"}

    def test_shape_is_never_broadcast(self, bench: Bench) -> None:
        bench.add({"y": np.ones((2, 1), F)}, {"y": np.ones((2, 3), F)}, {"y": np.ones((2, 1))})
        finding = bench.judge()[0]["parity.shape"]
        assert finding.status == "fail"
        assert "expected [2, 1], got [2, 3]" in finding.message

    def test_a_size_that_pytorch_is_not_sure_of_is_a_warning(self, bench: Bench) -> None:
        bench.add({"kept": np.ones((5, 4), F)}, {"kept": np.ones((6, 4), F)}, {"kept": np.ones((6, 4))})
        assert bench.statuses()["parity.shape"] == "warn"

    def test_a_wrong_rank_is_not_excused_by_the_oracle(self, bench: Bench) -> None:
        bench.add({"y": np.ones((5, 1), F)}, {"y": np.ones(5, F)}, {"y": np.ones((6, 1))})
        assert bench.statuses()["parity.shape"] == "fail"

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_what_is_not_finite_must_stand_at_the_same_place(self, bench: Bench, value: float) -> None:
        torch = np.array([1.0, 2.0, 3.0], F)
        bad = torch.copy()
        bad[1] = value
        bench.add({"y": torch}, {"y": bad}, {"y": torch.astype(float)})
        finding = bench.judge()[0]["parity.nonfinite"]
        assert finding.status == "fail"
        assert "first at [1]: expected 2, got" in finding.message

    @pytest.mark.parametrize(("want", "got"), [(np.nan, 1.0), (np.inf, -np.inf), (np.nan, np.inf)])
    def test_nor_may_it_differ_in_kind_or_sign(self, bench: Bench, want: float, got: float) -> None:
        bench.add({"y": np.array([want], F)}, {"y": np.array([got], F)}, origin="boundary")
        assert bench.statuses()["parity.nonfinite"] == "fail"

    def test_one_side_may_overflow_a_little_earlier(self, bench: Bench) -> None:
        top = np.finfo(np.float16).max
        bench.add(
            {"y": np.array([np.inf, 1], np.float16)},
            {"y": np.array([top, 1], np.float16)},
            {"y": np.array([65519.0, 1])},
        )
        assert bench.statuses() == {}

    def test_other_cases_are_still_judged_when_one_breaks_a_layer(self, bench: Bench, rng: np.random.Generator) -> None:
        oracle, torch, target = three(rng)
        bench.add({"y": torch}, {"y": target}, {"y": oracle})
        bench.add({"y": torch}, {"y": target[:1]}, {"y": oracle})
        bench.add({"y": torch}, {"y": target + F(1)}, {"y": oracle})
        found, figures = bench.judge()
        assert found["parity.shape"].status == found["parity.runtime"].status == "fail"
        assert sorted(one.status for one in figures) == ["fail", "fail", "pass"]


class TestReferenceNan:
    NAN = np.array([np.nan, 1.0], F)

    @pytest.mark.parametrize(("origin", "status"), [("user", "fail"), ("boundary", "warn"), ("example", "warn")])
    def test_nan_in_pytorch_itself(self, bench: Bench, origin: str, status: str) -> None:
        bench.add({"y": self.NAN}, {"y": self.NAN}, {"y": self.NAN.astype(float)}, origin=origin)
        assert bench.statuses() == {"parity.reference-nan": status}

    def test_may_be_allowed(self, bench: Bench) -> None:
        bench.spec = ParitySpec(allow_nan=["y"])
        bench.add({"y": self.NAN}, {"y": self.NAN}, {"y": self.NAN.astype(float)})
        assert bench.statuses() == {}
        assert "allow_nan" in bench.judge()[0]["parity.reference-nan"].message

    def test_allowing_it_excuses_no_other_place(self, bench: Bench) -> None:
        bench.spec = ParitySpec(allow_nan=["y"])
        bench.add({"y": self.NAN}, {"y": self.NAN[::-1]}, {"y": self.NAN.astype(float)})
        assert bench.statuses()["parity.nonfinite"] == "fail"


class TestExact:
    @pytest.mark.parametrize(
        ("want", "got", "far"),
        [
            (np.array([2**64 - 1], np.uint64), np.array([0], np.uint64), 2.0**64),
            (np.array([-(2**63)], np.int64), np.array([2**63 - 1], np.int64), 2.0**64),
            (np.array([-128], np.int8), np.array([127], np.int8), 255.0),
            (np.array([True]), np.array([False]), 1.0),
            (np.array([-8], ml_dtypes.int4), np.array([7], ml_dtypes.int4), 15.0),
        ],
    )
    def test_differences_are_widened(self, bench: Bench, want: np.ndarray, got: np.ndarray, far: float) -> None:
        bench.add({"y": want}, {"y": got})
        found, figures = bench.judge()
        assert found["parity.exact"].status == "fail"
        assert figures[0].max_abs == pytest.approx(far)

    def test_neighbours_beyond_float64_are_different(self, bench: Bench) -> None:
        bench.add({"y": np.array([2**53], np.int64)}, {"y": np.array([2**53 + 1], np.int64)})
        assert bench.statuses() == {"parity.exact": "fail"}

    @pytest.mark.parametrize(
        "got", [np.array(["a", "é"], object), np.array(["a", "é"]), np.array([b"a", "é".encode()], object)]
    )
    def test_strings_are_equal_however_they_are_stored(self, bench: Bench, got: np.ndarray) -> None:
        bench.add({"y": np.array(["a", "é"], object)}, {"y": got})
        assert bench.statuses() == {}

    def test_strings_that_differ(self, bench: Bench) -> None:
        bench.add({"y": np.array(["cat"], object)}, {"y": np.array(["dog"], object)})
        assert "expected cat, got dog" in bench.judge()[0]["parity.exact"].message

    def test_says_how_many_where_and_in_which_case(self, bench: Bench) -> None:
        want = np.arange(6).reshape(2, 3)
        got = want.copy()
        got[1, 1:] = 9
        bench.add({"y": want}, {"y": want})
        bench.add({"y": want}, {"y": got}, dims={"batch": 2})
        message = bench.judge()[0]["parity.exact"].message
        assert (
            message
            == "y: 2 of 6 elements differ in case 'case1' (batch=2); first at [1, 1]: expected 4, got 9; 1 of 2 cases"
        )


class TestRuntime:
    def test_message_has_the_figures_of_the_worst_case(self, bench: Bench) -> None:
        oracle = np.array([[1.0, 2.0], [3.0, 4.0]])
        torch = oracle.astype(F)
        bench.add({"y": torch}, {"y": torch}, {"y": oracle})
        bench.add({"y": torch}, {"y": torch + F([[0, 0], [0, 0.5]])}, {"y": oracle}, dims={"batch": 2})
        finding = bench.judge()[0]["parity.runtime"]
        assert finding.message == (
            "y: relL2 0.091 against the float64 oracle, allowed 5.0e-6 (PyTorch itself: 0); "
            "worst in case 'case1' (batch=2) at [1, 1]: expected 4, got 4.5; 1 of 2 cases"
        )
        assert finding.data["cases"] == ["case1"]

    def test_one_bad_element_in_a_large_output(self, bench: Bench, rng: np.random.Generator) -> None:
        oracle, torch, target = three(rng, (1000, 1000))
        target[3, 4] += F(5e-4)
        bench.add({"y": torch}, {"y": target}, {"y": oracle})
        finding = bench.judge()[0]["parity.runtime"]
        assert finding.status == "fail"
        assert "one element is off" in finding.message
        assert "at [3, 4]" in finding.message

    def test_one_bad_item_in_a_large_batch(self, bench: Bench, rng: np.random.Generator) -> None:
        # Spread over its item, the error is small in each element (of an output with a peak) and in the whole.
        oracle = rng.standard_normal((4096, 256))
        oracle[:, 0] = 100.0
        torch, target = oracle.astype(F), oracle.astype(F)
        target[17, 1:] += F(9e-4)
        bench.add({"y": torch}, {"y": target}, {"y": oracle})
        finding = bench.judge()[0]["parity.runtime"]
        assert finding.status == "fail"
        assert "item 17 of the batch" in finding.message

    @pytest.mark.parametrize(("dtype", "noise"), [(np.float16, 3e-4), (BFLOAT16, 2e-3), (np.float64, 1e-15)])
    def test_other_dtypes_have_their_own_floor(
        self, bench: Bench, rng: np.random.Generator, dtype: np.dtype, noise: float
    ) -> None:
        oracle = rng.standard_normal((8, 64))
        torch, target = ((oracle * (1 + noise * rng.standard_normal(oracle.shape))).astype(dtype) for _ in range(2))
        bench.add({"y": torch}, {"y": target}, {"y": oracle})
        assert bench.statuses() == {}
        bench.add({"y": torch}, {"y": (target.astype(float) * 1.2).astype(dtype)}, {"y": oracle})
        assert bench.statuses() == {"parity.runtime": "fail"}

    def test_budget_is_a_multiple_of_what_pytorch_errs(self, bench: Bench, rng: np.random.Generator) -> None:
        oracle = rng.standard_normal((50, 100))
        torch, good, bad = (
            (oracle + scale * rng.standard_normal(oracle.shape)).astype(F) for scale in (1e-4, 3e-4, 6e-4)
        )
        bench.add({"y": torch}, {"y": good}, {"y": oracle})
        assert bench.statuses() == {}
        bench.add({"y": torch}, {"y": bad}, {"y": oracle})
        assert bench.statuses() == {"parity.runtime": "fail"}

    def test_one_hard_case_does_not_loosen_the_others(self, bench: Bench, rng: np.random.Generator) -> None:
        oracle = rng.standard_normal((50, 100))

        def erring(scale: float) -> np.ndarray:
            return (oracle + scale * rng.standard_normal(oracle.shape)).astype(F)

        for _ in range(4):
            bench.add({"y": erring(1e-5)}, {"y": erring(1e-5)}, {"y": oracle})
        bench.add({"y": erring(1e-3)}, {"y": erring(1e-3)}, {"y": oracle})
        assert bench.statuses() == {}
        bench.add({"y": erring(1e-5)}, {"y": erring(1e-3)}, {"y": oracle})
        assert bench.statuses() == {"parity.runtime": "fail"}

    def test_equal_bits_always_pass(self, bench: Bench, rng: np.random.Generator) -> None:
        oracle = rng.standard_normal((2, 3))
        for scale in (0.0, 1e-7, 1e-2):
            torch = (oracle + scale * rng.standard_normal(oracle.shape)).astype(F)
            bench.add({"y": torch}, {"y": torch}, {"y": oracle})
        assert "fail" not in bench.statuses().values()

    def test_ill_conditioned_is_a_warning_beside_the_verdict(self, bench: Bench, rng: np.random.Generator) -> None:
        oracle, torch, target = three(rng, (20, 20), noise=1e-2)
        bench.add({"y": torch}, {"y": target}, {"y": oracle})
        assert bench.statuses() == {"parity.ill-conditioned": "warn"}
        told = bench.judge()[0]["parity.ill-conditioned"]
        assert "in case 'case0', more than 0.001, so parity says little here" in told.message
        assert told.data["e_torch"] == pytest.approx(1e-2, rel=0.2)
        assert told.data["cases"] == ["case0"]

    def test_halves_are_not_ill_conditioned_by_nature(self, bench: Bench, rng: np.random.Generator) -> None:
        oracle = rng.standard_normal((20, 20))
        torch = (oracle * (1 + 4e-3 * rng.standard_normal(oracle.shape))).astype(BFLOAT16)
        bench.add({"y": torch}, {"y": torch}, {"y": oracle})
        assert bench.statuses() == {}

    def test_a_lone_scalar_that_may_be_chance_is_a_warning(self, bench: Bench) -> None:
        bench.add({"y": F([1.00002])}, {"y": F([1.002])}, {"y": np.array([1.0])})
        assert bench.statuses() == {"parity.runtime": "warn"}
        bench.add({"y": F([1.00002])}, {"y": F([1.2])}, {"y": np.array([1.0])})
        assert bench.statuses() == {"parity.runtime": "fail"}

    def test_two_runs_that_differ_are_judged_by_the_worse(self, bench: Bench, rng: np.random.Generator) -> None:
        oracle, torch, target = three(rng)
        bench.add({"y": torch}, {"y": target}, {"y": oracle}, again={"y": target + F(0.1)})
        found, figures = bench.judge()
        assert found["parity.runtime"].status == "fail"
        assert "run to run" in found["parity.runtime"].hint
        assert "two runs differ" in figures[0].note

    def test_two_equal_runs_are_one(self, bench: Bench, rng: np.random.Generator) -> None:
        oracle, torch, target = three(rng)
        target[0, 0] = torch[0, 0] = oracle[0, 0] = np.nan
        bench.add({"y": torch}, {"y": target}, {"y": oracle}, again={"y": target.copy()}, origin="boundary")
        assert "two runs" not in bench.judge()[1][0].note

    def test_a_second_run_without_an_output_fails(self, bench: Bench) -> None:
        bench.add({"y": np.ones(1, F)}, {"y": np.ones(1, F)}, {"y": np.ones(1)}, again={})
        assert bench.statuses() == {"parity.names": "fail"}

    def test_pytorch_that_changes_from_call_to_call_is_named_as_the_cause(self, bench: Bench) -> None:
        bench.add({"y": np.ones(100, F)}, {"y": np.full(100, 2, F)}, {"y": np.ones(100)}, unsure=("y",))
        assert "PyTorch's own output changes" in bench.judge()[0]["parity.runtime"].hint


class TestUnoracled:
    def test_is_said_and_judged_against_pytorch(self, bench: Bench, rng: np.random.Generator) -> None:
        _, torch, target = three(rng)
        bench.add({"y": torch}, {"y": target}, None)
        found, figures = bench.judge()
        assert bench.statuses() == {}
        assert found["parity.unoracled"].status == "pass"
        said = "in 1 of 1 case, by rtol 0.001 and atol 1.0e-4 of the largest element, since there is no oracle: "
        assert said in found["parity.unoracled"].message
        assert (figures[0].against, figures[0].e_torch, figures[0].limit) == ("eager", None, None)

    @pytest.mark.parametrize("scale", [1e-20, 1e-6, 1.0, 1e6, 1e30])
    def test_tolerance_follows_the_scale(self, bench: Bench, rng: np.random.Generator, scale: float) -> None:
        torch = (scale * rng.standard_normal((8, 8))).astype(F)
        noise = (scale * 5e-5 * rng.standard_normal((8, 8))).astype(F)
        bench.add({"y": torch}, {"y": torch + noise}, None)
        assert bench.statuses() == {}
        bench.add({"y": torch}, {"y": torch + F(scale)}, None)
        # A wrong output below any floor can't be told from rounding without an oracle.
        assert bench.statuses() == {"parity.runtime": "warn" if scale < 5e-6 else "fail"}

    def test_an_oracle_of_another_shape_is_none(self, bench: Bench) -> None:
        bench.add({"y": np.ones(3, F)}, {"y": np.ones(3, F)}, {"y": np.ones(4)})
        assert "another shape: [4] instead of [3]" in bench.judge()[0]["parity.unoracled"].message


class TestManualTolerance:
    def spec(self, expires: str | None = None) -> ParitySpec:
        tolerance = Tolerance(rtol=0.0, atol=0.1, reason="int8 head, reviewed in #12", expires=expires)
        return ParitySpec(outputs={"y": tolerance})

    def test_replaces_the_budget_and_shows_its_reason(self, bench: Bench) -> None:
        bench.spec = self.spec()
        bench.add({"y": np.ones(3, F)}, {"y": np.full(3, 1.05, F)}, {"y": np.ones(3)})
        found, figures = bench.judge()
        assert "parity.runtime" not in found
        assert found["parity.tolerance"].status == "pass"
        assert "int8 head, reviewed in #12" in found["parity.tolerance"].message
        assert "manual tolerance" in figures[0].note

    def test_is_a_limit_too(self, bench: Bench) -> None:
        bench.spec = self.spec()
        bench.add({"y": np.ones(3, F)}, {"y": np.full(3, 1.2, F)}, {"y": np.ones(3)})
        assert bench.statuses() == {"parity.tolerance": "fail"}

    def test_excuses_no_other_layer(self, bench: Bench) -> None:
        bench.spec = self.spec()
        bench.add({"y": np.ones(1, F)}, {"y": np.array([np.nan], F)}, {"y": np.ones(1)})
        assert bench.statuses()["parity.nonfinite"] == "fail"

    def test_counts_up_to_its_last_day(self, bench: Bench) -> None:
        bench.spec = self.spec(expires="2027-06-01")
        bench.add({"y": np.ones(3, F)}, {"y": np.full(3, 1.05, F)}, {"y": np.ones(3)})
        assert "parity.runtime" not in bench.judge(today="2027-06-01")[0]
        late = bench.judge(today="2027-06-02")[0]
        assert late["parity.runtime"].status == "fail"
        assert "expired on 2027-06-01" in late["parity.runtime"].message

    def test_zero_expected_and_zero_allowed(self, bench: Bench) -> None:
        bench.spec = ParitySpec(outputs={"y": Tolerance(rtol=1e-3, atol=0.0, reason="why")})
        bench.add({"y": np.zeros(2, F)}, {"y": np.zeros(2, F)}, None)
        assert bench.statuses() == {}
        bench.add({"y": np.zeros(2, F)}, {"y": np.full(2, 1e-30, F)}, None)
        assert bench.statuses() == {"parity.tolerance": "fail"}


class TestProperties:
    seeds = st.integers(0, 2**32 - 1)
    shapes = st.sampled_from([(), (1,), (7,), (4, 5), (3, 1, 6)])

    @given(seeds, shapes, st.sampled_from([np.float16, F, np.float64, BFLOAT16]))
    def test_identity_passes(self, seed: int, shape: tuple[int, ...], dtype: np.dtype) -> None:
        bench, oracle = Bench(), np.random.default_rng(seed).standard_normal(shape)
        torch = oracle.astype(dtype)
        bench.add({"y": torch}, {"y": torch}, {"y": oracle})
        assert bench.statuses() == {}

    @given(seeds, st.sampled_from(["nan", "shape", "dtype", "value"]))
    def test_any_perturbation_fails(self, seed: int, kind: str) -> None:
        rng, bench = np.random.default_rng(seed), Bench()
        oracle, torch, target = three(rng, (4, 6))
        at = tuple(rng.integers(0, n) for n in target.shape)
        if kind == "nan":
            target[at] = np.nan
        elif kind == "value":
            target[at] += F(0.01)
        elif kind == "shape":
            target = target[:, :-1]
        else:
            target = target.astype(np.float64)
        bench.add({"y": torch}, {"y": target}, {"y": oracle})
        assert "fail" in bench.statuses().values()

    @given(seeds, st.integers(-40, 40))
    def test_the_verdict_does_not_hang_on_the_scale(self, seed: int, power: int) -> None:
        scale, rng = 2.0**power, np.random.default_rng(seed)
        oracle, torch, target = three(rng, (5, 5))
        target[0, 0] += F(rng.choice([0.0, 1e-4, 1e-6]))
        statuses = []
        for factor in (1.0, scale):
            bench = Bench()
            bench.add({"y": torch * F(factor)}, {"y": target * F(factor)}, {"y": oracle * factor}, unit=factor)
            statuses.append(bench.statuses())
        assert statuses[0] == statuses[1]


def test_largest_magnitude_is_of_finite_floats_and_at_least_one() -> None:
    values = {"x": F([-300.0, np.inf, np.nan]), "ids": np.array([9999]), "none": None, "list": [F([2.0])]}
    assert largest_magnitude(values) == 300.0
    assert largest_magnitude({"x": F([0.001])}) == 1.0
    assert largest_magnitude({}) == 1.0
