from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnx_ci.records.model import ParitySpec

from .conftest import Bench

F = np.float32


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class TestArgmax:
    SCORES = F([[0.1, 0.45, 0.45], [0.7, 0.2, 0.1]])
    NUDGED = F([[0.1, 0.45 - 2e-8, 0.45 + 2e-8], [0.7, 0.2, 0.1]])

    def add(self, bench: Bench, want: list[int], got: list[int], scores: np.ndarray | None = None) -> None:
        scores = self.SCORES if scores is None else scores
        bench.add(
            {"score": scores, "label": np.array(want)},
            {"score": self.NUDGED if scores is self.SCORES else scores, "label": np.array(got)},
            {"score": scores.astype(float), "label": np.array(want)},
        )

    def test_a_flip_at_a_tie_is_explained_and_shown(self, bench: Bench) -> None:
        self.add(bench, [1, 0], [2, 0])
        found, figures = bench.judge()
        assert bench.statuses() == {}
        assert found["parity.exact"].message.startswith("label: equal in 1 case but for 1 flip")
        assert "score" in found["parity.exact"].message
        assert found["parity.exact"].data["explained"] == 1
        assert "tie" in next(one for one in figures if one.output == "label").note

    def test_a_flip_without_a_tie_fails(self, bench: Bench) -> None:
        self.add(bench, [1, 0], [1, 1])
        assert bench.statuses() == {"parity.exact": "fail"}

    def test_the_same_tie_does_not_excuse_a_third_class(self, bench: Bench) -> None:
        self.add(bench, [1, 0], [0, 0])
        assert bench.statuses() == {"parity.exact": "fail"}

    @pytest.mark.parametrize("bad", [3, -1, 2**62])
    def test_an_index_outside_the_classes_fails(self, bench: Bench, bad: int) -> None:
        self.add(bench, [1, 0], [bad, 0])
        assert bench.statuses() == {"parity.exact": "fail"}

    def test_exact_ties_means_exact(self, bench: Bench) -> None:
        bench.spec = ParitySpec(ties="exact")
        self.add(bench, [1, 0], [2, 0])
        assert bench.statuses() == {"parity.exact": "fail"}

    def test_scores_that_the_indices_do_not_pick_from_explain_nothing(self, bench: Bench) -> None:
        self.add(bench, [0, 1], [2, 1], scores=F([[0.3, 0.5, 0.3, 0.1], [0.7, 0.2, 0.1, 0.3]]))
        assert bench.statuses() == {"parity.exact": "fail"}

    def test_without_scores_fails_with_a_hint(self, bench: Bench) -> None:
        bench.add({"label": np.array([1])}, {"label": np.array([2])}, {"label": np.array([1])})
        finding = bench.judge()[0]["parity.exact"]
        assert finding.status == "fail"
        assert "return the scores" in finding.hint

    def test_where_pytorch_itself_flips_in_float64(self, bench: Bench) -> None:
        bench.add({"label": np.array([1, 4])}, {"label": np.array([2, 4])}, {"label": np.array([2, 4])})
        assert bench.statuses() == {}
        assert "the oracle" in bench.judge()[0]["parity.exact"].message

    def test_the_oracle_excuses_its_own_place_only(self, bench: Bench) -> None:
        bench.add({"label": np.array([1, 4])}, {"label": np.array([2, 5])}, {"label": np.array([2, 4])})
        assert "1 of 2 elements differ" in bench.judge()[0]["parity.exact"].message

    @pytest.mark.parametrize("axis", [0, 1, 2])
    @pytest.mark.parametrize("keep", [True, False])
    def test_over_any_axis_kept_or_dropped(self, bench: Bench, axis: int, keep: bool) -> None:
        scores = np.random.default_rng(5).uniform(0, 0.5, (4, 5, 6)).astype(F)
        at: list[object] = [1, 2, 3]
        place = list(at)
        place[axis] = 0
        first, second = list(at), list(at)
        first[axis], second[axis] = 0, 3
        scores[tuple(first)] = scores[tuple(second)] = 0.9
        want = scores.argmax(axis, keepdims=keep)
        got = want.copy()
        where = tuple(place) if keep else tuple(p for a, p in enumerate(place) if a != axis)
        got[where] = 3
        bench.add({"s": scores, "i": want}, {"s": scores, "i": got}, {"s": scores.astype(float), "i": want})
        assert bench.statuses() == {}

    def test_argmin_and_argmax_over_everything(self, bench: Bench) -> None:
        scores = F([[3, 1], [1, 2]])
        bench.add({"s": scores, "i": np.array(1)}, {"s": scores, "i": np.array(2)}, {"s": scores.astype(float)})
        assert bench.statuses() == {}


class TestTopK:
    def test_neighbours_in_rank_may_change_places(self, bench: Bench) -> None:
        scores = F([[0.9, 0.5, 0.5, 0.1, 0.3]])
        want, got = np.array([[0, 1, 2]]), np.array([[0, 2, 1]])
        bench.add({"s": scores, "i": want}, {"s": scores, "i": got}, {"s": scores.astype(float), "i": want})
        assert bench.statuses() == {}

    def test_others_may_not(self, bench: Bench) -> None:
        scores = F([[0.9, 0.5, 0.5, 0.1, 0.3]])
        want, got = np.array([[0, 1, 2]]), np.array([[1, 0, 2]])
        bench.add({"s": scores, "i": want}, {"s": scores, "i": got}, {"s": scores.astype(float), "i": want})
        assert bench.statuses() == {"parity.exact": "fail"}

    def test_values_of_the_picked_ones_are_enough(self, bench: Bench) -> None:
        values = F([[0.9, 0.5, 0.5]])
        want, got = np.array([[7, 3, 8]]), np.array([[7, 8, 3]])
        bench.add({"v": values, "i": want}, {"v": values, "i": got}, {"v": values.astype(float), "i": want})
        assert bench.statuses() == {}

    def test_right_values_do_not_excuse_wrong_indices(self, bench: Bench) -> None:
        values = F([[0.9, 0.5, 0.2]])
        want, got = np.array([[7, 3, 8]]), np.array([[8, 4, 9]])  # an offset by one
        bench.add({"v": values, "i": want}, {"v": values, "i": got}, {"v": values.astype(float), "i": want})
        assert bench.statuses() == {"parity.exact": "fail"}

    def test_boxes_chosen_by_an_explained_flip_are_left_out(self, bench: Bench) -> None:
        scores = F([0.9, 0.5, 0.5, 0.1])
        boxes = np.arange(16, dtype=F).reshape(4, 4)
        want, got = np.array([0, 1, 2]), np.array([0, 2, 1])
        bench.add(
            {"s": scores, "i": want, "box": boxes[want]},
            {"s": scores, "i": got, "box": boxes[got]},
            {"s": scores.astype(float), "i": want, "box": boxes[want].astype(float)},
        )
        assert bench.statuses() == {}
        note = next(one.note for one in bench.judge()[1] if one.output == "box")
        assert "8 elements left out" in note

    def test_the_other_boxes_are_still_compared(self, bench: Bench) -> None:
        scores = F([0.9, 0.5, 0.5, 0.1])
        boxes = np.arange(16, dtype=F).reshape(4, 4)
        want, got = np.array([0, 1, 2]), np.array([0, 2, 1])
        wrong = boxes[got].copy()
        wrong[0] += 1
        bench.add(
            {"s": scores, "i": want, "box": boxes[want]},
            {"s": scores, "i": got, "box": wrong},
            {"s": scores.astype(float), "i": want, "box": boxes[want].astype(float)},
        )
        assert bench.statuses() == {"parity.runtime": "fail"}


class TestMasks:
    def test_at_a_round_threshold(self, bench: Bench) -> None:
        scores, nudged = F([0.2, 0.5 + 3e-8, 0.9]), F([0.2, 0.5, 0.9])
        bench.add({"p": scores, "m": scores > 0.5}, {"p": nudged, "m": nudged > 0.5}, {"p": scores.astype(float)})
        assert bench.statuses() == {}

    def test_away_from_it_fails(self, bench: Bench) -> None:
        scores = F([0.2, 0.63, 0.9])
        bench.add({"p": scores, "m": scores > 0.5}, {"p": scores, "m": scores > 0.7}, {"p": scores.astype(float)})
        assert bench.statuses() == {"parity.exact": "fail"}


@given(st.integers(0, 2**32 - 1))
def test_random_near_ties_are_explained_and_clear_wins_are_not(seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((16, 8))
    logits[:4, 1] = logits[:4].max(-1) + 1e-7 * rng.uniform(-1, 1, 4)
    torch = softmax(logits).astype(F)
    target = softmax(logits + 1e-7 * rng.standard_normal(logits.shape)).astype(F)
    bench = Bench()
    bench.add({"p": torch, "i": torch.argmax(-1)}, {"p": target, "i": target.argmax(-1)}, {"p": softmax(logits)})
    assert bench.statuses() == {}
    wrong = torch.argmax(-1)
    wrong[5] = torch[5].argmin()
    bench.add({"p": torch, "i": torch.argmax(-1)}, {"p": target, "i": wrong}, {"p": softmax(logits)})
    assert bench.statuses() == {"parity.exact": "fail"}
