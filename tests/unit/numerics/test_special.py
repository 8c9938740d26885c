"""Cases of special values: judged beside the others, never pooled with them, a warning where nobody promised them."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_ci.numerics.parity import not_run
from onnx_ci.records.cases import Case, CaseOutput

from .conftest import Bench

F = np.float32


@pytest.fixture
def usual(bench: Bench, rng: np.random.Generator) -> Bench:
    for _ in range(3):
        oracle = rng.standard_normal((4, 10))
        torch, target = ((oracle + 1e-7 * rng.standard_normal((4, 10))).astype(F) for _ in range(2))
        bench.add({"y": torch, "at": oracle.argmax(1)}, {"y": target, "at": oracle.argmax(1)}, {"y": oracle})
    return bench


def add(bench: Bench, want: np.ndarray, got: np.ndarray, advisory: str = "", at: int = 0) -> None:
    ats = np.zeros(4, np.int64), np.full(4, at)
    bench.add(
        {"y": want, "at": ats[0]},
        {"y": got, "at": ats[1]},
        {"y": want.astype(float)},
        origin="special",
        advisory=advisory,
    )


WANT = np.linspace(0, 1, 40, dtype=F).reshape(4, 10)


def test_what_agrees_adds_nothing_but_its_figures(usual: Bench) -> None:
    before, figures = usual.judge()
    add(usual, np.zeros((4, 10), F), np.zeros((4, 10), F))
    add(usual, WANT, WANT)
    after, more = usual.judge()
    assert after == before
    assert more[: len(figures)] == figures
    assert [row.status for row in more] == ["pass"] * 10


@pytest.mark.parametrize("advisory", ["", "no value range is declared for x"])
def test_another_function_fails_where_the_values_are_promised_and_warns_where_not(usual: Bench, advisory: str) -> None:
    add(usual, WANT, WANT + F(0.1), advisory)
    found, figures = usual.judge()
    status = "warn" if advisory else "fail"
    assert found["parity.runtime"].status == status
    assert "case 'case3'" in found["parity.runtime"].message
    assert (advisory in found["parity.runtime"].message) is True
    assert [row.status for row in figures if row.case == "case3" and row.output == "y"] == [status]
    assert usual.statuses() == {"parity.runtime": status}


@pytest.mark.parametrize(("off", "status"), [(2e-5, "pass"), (2e-4, "pass"), (2e-2, "fail")])
def test_a_hundredth_is_allowed(usual: Bench, off: float, status: str) -> None:
    add(usual, WANT, WANT * F(1 + off))
    assert usual.judge()[0]["parity.runtime"].status == status


def test_the_others_are_judged_as_if_there_were_none(usual: Bench, rng: np.random.Generator) -> None:
    oracle = rng.standard_normal((4, 10))
    usual.add(
        {"y": oracle.astype(F), "at": oracle.argmax(1)}, {"y": (oracle * (1 + 1e-3)).astype(F), "at": oracle.argmax(1)},
        {"y": oracle},
    )  # fmt: skip
    before = usual.judge()[0]["parity.runtime"]
    noisy = oracle + 0.5 * rng.standard_normal((4, 10))
    for _ in range(4):  # PyTorch itself is far off: no allowance for anything else
        usual.add({"y": noisy.astype(F)}, {"y": noisy.astype(F)}, {"y": oracle}, origin="special")
    after = usual.judge()[0]["parity.runtime"]
    assert before == after
    assert before.status == "fail"
    assert "parity.ill-conditioned" not in usual.statuses()


def test_indices_and_layers_warn_without_a_promise(usual: Bench) -> None:
    add(usual, WANT, WANT[:, :5], "nobody said so", at=3)
    found, _ = usual.judge()
    for rule in ("parity.shape", "parity.exact"):
        assert found[rule].status == "warn"
        assert found[rule].message.endswith("a warning only, since nobody said so")


def test_where_pytorch_itself_gives_nan_nothing_is_failed(usual: Bench) -> None:
    nan = np.where(WANT > 0.5, F(np.nan), WANT)
    add(usual, nan, WANT)
    assert usual.statuses() == {"parity.nonfinite": "warn", "parity.reference-nan": "warn"}
    usual.spec = type(usual.spec)(allow_nan=["y"])
    assert usual.statuses() == {"parity.nonfinite": "fail"}


def test_nan_of_values_that_nobody_sends_is_only_shown(usual: Bench) -> None:
    nan = np.where(WANT > 0.5, F(np.nan), WANT)
    add(usual, nan, nan, "nobody said so")
    shown = usual.judge()[0]["parity.reference-nan"]
    assert (shown.status, shown.message.endswith("; but nobody said so")) == ("pass", True)


@pytest.mark.parametrize(("advisory", "status"), [("", "fail"), ("nobody said so", "warn")])
def test_a_runtime_that_stops(usual: Bench, advisory: str, status: str) -> None:
    case = Case(index=9, name="special-high", origin="special", why="", advisory=advisory)
    usual.comparisons.append(not_run(case, "indices out of bounds"))
    found = usual.judge()[0]["parity.run"]
    assert (found.status, "special-high" in found.message) == (status, True)


def doubted(usual: Bench, got: np.ndarray, sway: float | None, *, firm: bool, at: int = 3) -> dict[str, str]:
    known = CaseOutput(name="y", dtype="float32", shape=[4, 10], sway=sway, firm=firm)
    ats = np.zeros(4, np.int64)
    usual.add(
        {"y": WANT, "at": ats}, {"y": got, "at": ats + at}, {"y": WANT.astype(float)},
        origin="special", advisory="it hangs on rounding", outputs=(known,),
    )  # fmt: skip
    return usual.statuses()


def test_nan_is_no_rounding_where_pytorch_stays_finite(usual: Bench) -> None:
    nan = np.where(WANT > 0.5, F(np.nan), WANT)
    found = doubted(usual, nan, 0.3, firm=True)
    assert found == {"parity.nonfinite": "fail", "parity.exact": "warn"}  # an index may flip at a tie all the same
    rows = {row.output: row.status for row in usual.judge()[1] if row.case == "case3"}
    assert rows == {"y": "fail", "at": "warn"}


def test_nan_is_excused_where_pytorch_has_it_beside(usual: Bench) -> None:
    nan = np.where(WANT > 0.5, F(np.nan), WANT)
    assert doubted(usual, nan, 0.3, firm=False) == {"parity.nonfinite": "warn", "parity.exact": "warn"}


@pytest.mark.parametrize(("sway", "status"), [(0.1, "warn"), (0.04, "fail"), (None, "warn")])
def test_a_difference_is_excused_as_far_as_pytorchs_own_answer_moves(
    usual: Bench, sway: float | None, status: str
) -> None:
    assert doubted(usual, WANT + F(0.5), sway, firm=True, at=0) == {"parity.runtime": status}


def test_a_fault_of_the_others_is_told_rather_than_the_same_of_special_values(usual: Bench) -> None:
    oracle = np.ones((4, 10))
    usual.add({"y": oracle.astype(F)}, {"y": (1.1 * oracle).astype(F)}, {"y": oracle})
    alone = usual.all_findings()
    add(usual, WANT, 2 * WANT)
    assert usual.all_findings() == alone


def test_special_values_alone_prove_nothing(bench: Bench) -> None:
    add(bench, WANT, WANT)
    assert bench.statuses() == {"parity.names": "error"}


@pytest.mark.parametrize("blind", [False, True])
def test_a_users_case_in_which_a_query_sees_nothing_fails_and_says_so(usual: Bench, blind: bool) -> None:
    usual.add({"y": WANT}, {"y": WANT + F(0.1)}, {"y": WANT.astype(float)}, origin="user", blind=blind)
    found = usual.judge()[0]["parity.runtime"]
    assert found.status == "fail"
    assert ("a query sees no key" in found.message) is blind
