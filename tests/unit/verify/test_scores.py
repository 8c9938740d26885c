"""Indices and masks that flip where scores inside the graph tie: measured in a real session beside the twin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_ci.artifact import golden
from onnx_ci.artifact.layout import Artifact
from onnx_ci.records.contract import TensorContract
from onnx_ci.records.messages import VerifyRequest
from onnx_ci.records.model import ParitySpec
from onnx_ci.records.result import Finding
from onnx_ci.verify import signature
from onnx_ci.verify.job import verify
from onnx_ci.verify.scores import choices

from .artifacts import CPU, MadeCase, contract_of, linear_job, linear_model, model_of, value, write_artifact

F = np.float32
RANDOM = np.random.default_rng(11)
X = RANDOM.normal(size=(2, 3)).astype(F)
W = np.repeat(RANDOM.normal(size=(3, 4)), 2, axis=1).astype(F)
"""Of eight classes two and two have the same weights, so that their scores tie."""
SCORES = X.astype(float) @ W.astype(float)
BEST = SCORES.argmax(-1)
OTHER = BEST ^ 1
WORST = SCORES.argmin(-1)
INDICES = TensorProto.INT64
LINEAR = helper.make_node("MatMul", ["x", "w"], ["scores"])


def written(
    folder: Path,
    nodes: Sequence[onnx.NodeProto],
    expected: np.ndarray,
    kind: int = INDICES,
    **more: Any,
) -> tuple[Artifact, Any]:
    """An artifact whose file computes scores from x ([batch, 3]) and an exact output y, which PyTorch gave as told."""
    constants = {"w": W, **more.pop("constants", {})}
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    output = value("y", kind, [None] * expected.ndim)
    inputs, domains = [value("x", TensorProto.FLOAT, ["batch", 3])], more.pop("domains", None)
    model = model_of([LINEAR, *nodes], inputs, [output], initializers, domains=domains)
    job = linear_job(**{key: more.pop(key) for key in ("parity",) if key in more})
    whole = contract_of(linear_model(), job)
    y = TensorContract(name="y", dtype=signature.read(model).outputs[0].dtype, shape=None, source="y")
    contract = contract_of(linear_model(), job, inputs=whole.inputs, outputs=[y])
    case = MadeCase("one", {"x": X}, {"y": expected}, None, dims={"batch": 2})
    return write_artifact(folder, model=model, cases=[case], job=job, contract=contract, **more), job


def judged(made: tuple[Artifact, Any]) -> dict[str, Finding]:
    artifact, job = made
    result = verify(VerifyRequest(artifact=str(artifact.folder), target=CPU, job=job), lambda _: None)
    assert not [one for one in result.findings if one.status == "error"]
    return {one.rule: one for one in result.findings if one.stage == "parity"}


def argmax(**more: Any) -> list[onnx.NodeProto]:
    return [helper.make_node("ArgMax", ["scores"], ["y"], axis=-1, **more)]


def test_the_other_of_two_that_tie_is_explained_counted_and_shown(tmp_path: Path) -> None:
    found = judged(written(tmp_path / "a", argmax(keepdims=0), OTHER))
    assert found["parity.exact"].status == "pass"
    assert "2 flips where the scores tie (inner value scores: 0 apart," in found["parity.exact"].message
    assert "is twice their error" in found["parity.exact"].message
    assert found["parity.exact"].data["explained"] == 2
    assert found["parity.unoptimized"].status == "pass"


def test_one_that_does_not_tie_fails(tmp_path: Path) -> None:
    found = judged(written(tmp_path / "a", argmax(keepdims=0), WORST))
    assert found["parity.exact"].status == "fail"
    assert "2 of 2 elements differ" in found["parity.exact"].message
    mixed = judged(written(tmp_path / "b", argmax(keepdims=0), np.array([OTHER[0], WORST[1]])))
    assert mixed["parity.exact"].status == "fail"


@pytest.mark.parametrize("apart", [1e-3, 1e-5])
def test_a_margin_beyond_twice_the_error_fails(tmp_path: Path, apart: float) -> None:
    wider = W.copy()
    wider[:, 1::2] *= F(1 - apart)
    model = written(tmp_path / "a", argmax(keepdims=0), OTHER, constants={"w": wider})
    assert judged(model)["parity.exact"].status == "fail"


def test_exact_is_opt_in_and_opens_nothing_more(tmp_path: Path) -> None:
    made = written(tmp_path / "a", argmax(keepdims=0), OTHER, parity=ParitySpec(ties="exact"))
    assert judged(made)["parity.exact"].status == "fail"


TWO = SCORES.argsort(-1)[:, ::-1][:, :2]
CHOICES = {
    "kept axis": (argmax(keepdims=1), OTHER[:, None], WORST[:, None], INDICES),
    "argmin": (
        [helper.make_node("ArgMin", ["scores"], ["y"], axis=-1, keepdims=0)],
        WORST ^ 1,
        BEST,
        INDICES,
    ),
    "cast and squeezed": (
        [
            helper.make_node("ArgMax", ["scores"], ["at"], axis=-1, keepdims=1),
            helper.make_node("Squeeze", ["at", "axis"], ["flat"]),
            helper.make_node("Cast", ["flat"], ["y"], to=TensorProto.INT32),
        ],
        OTHER.astype(np.int32),
        WORST.astype(np.int32),
        TensorProto.INT32,
    ),
    "top-k": (
        [helper.make_node("TopK", ["scores", "k"], ["v", "y"], axis=-1)],
        np.stack([OTHER, BEST], -1),
        np.stack([BEST, WORST], -1),
        INDICES,
    ),
    "a mask": (
        [helper.make_node("Greater", ["scores", "limit"], ["y"])],
        (SCORES[0, 0] < SCORES) ^ (SCORES[0, 0] == SCORES),
        SCORES[0, 0] >= SCORES,
        TensorProto.BOOL,
    ),
    "a mask as numbers": (
        [
            helper.make_node("Less", ["limit", "scores"], ["m"]),
            helper.make_node("Cast", ["m"], ["y"], to=TensorProto.INT64),
        ],
        ((SCORES[0, 0] < SCORES) ^ (SCORES[0, 0] == SCORES)).astype(np.int64),
        (SCORES[0, 0] >= SCORES).astype(np.int64),
        INDICES,
    ),
}
CONSTANTS = {"axis": np.array([1]), "k": np.array([2]), "limit": np.array(X @ W)[0, 0]}


@pytest.mark.parametrize("name", CHOICES)
def test_each_way_of_choosing(tmp_path: Path, name: str) -> None:
    nodes, tied, _, kind = CHOICES[name]
    found = judged(written(tmp_path / "a", nodes, tied, kind, constants=CONSTANTS))["parity.exact"]
    assert found.status == "pass", found.message
    assert found.data["explained"] > 0


@pytest.mark.parametrize("name", ["kept axis", "a mask"])
def test_weights_beside_the_file_are_found(tmp_path: Path, name: str) -> None:
    nodes, tied, wrong, kind = CHOICES[name]
    constants = {"limit": CONSTANTS["limit"]}
    for expected, status in ((tied, "pass"), (wrong, "fail")):
        made = written(tmp_path / status, nodes, expected, kind, constants=constants, external=True)
        assert judged(made)["parity.exact"].status == status


@pytest.mark.parametrize("name", CHOICES)
def test_each_way_of_choosing_wrong(tmp_path: Path, name: str) -> None:
    nodes, _, wrong, kind = CHOICES[name]
    assert judged(written(tmp_path / "a", nodes, wrong, kind, constants=CONSTANTS))["parity.exact"].status == "fail"


BOXES = np.array([[[0, 0, 1, 1], [5, 5, 6, 6], [9, 9, 10, 10], [20, 20, 21, 21]]], F)
TO_SCORES = [
    helper.make_node("ReduceSum", ["scores", "rows"], ["sums"], keepdims=0),
    helper.make_node("Reshape", ["sums", "form"], ["flat"]),
    helper.make_node("Slice", ["flat", "from", "to", "last"], ["four"]),
    helper.make_node("NonMaxSuppression", ["boxes", "four", "most", "overlap"], ["kept"]),
]
NMS = {
    "rows": np.array([0]),
    "form": np.array([1, 1, 8]),
    "from": np.array([0]),
    "to": np.array([4]),
    "last": np.array([2]),
    "boxes": BOXES,
    "most": np.array([4]),
    "overlap": np.array([0.5], F),
    "column": np.array(2),
}
ORDER = (-SCORES.sum(0)[:4]).argsort(kind="stable")
SWAPPED = ORDER ^ 1


def rows(boxes: np.ndarray) -> np.ndarray:
    return np.stack([0 * boxes, 0 * boxes, boxes], -1)


@pytest.mark.parametrize(("kept", "status"), [(SWAPPED, "pass"), (ORDER, "pass"), (ORDER[::-1], "fail")])
def test_suppression_keeps_boxes_that_tie_in_either_order(tmp_path: Path, kept: np.ndarray, status: str) -> None:
    whole = [*TO_SCORES, helper.make_node("Identity", ["kept"], ["y"])]
    assert judged(written(tmp_path / "a", whole, rows(kept), constants=NMS))["parity.exact"].status == status
    column = [*TO_SCORES, helper.make_node("Gather", ["kept", "column"], ["y"], axis=1)]
    assert judged(written(tmp_path / "b", column, kept, constants=NMS))["parity.exact"].status == status


def test_a_file_whose_scores_are_wrong_is_not_excused(tmp_path: Path) -> None:
    """Its scores are those of its twin, but PyTorch's indices pick none of the best of them."""
    other = RANDOM.normal(size=W.shape).astype(F)
    wrong = (X.astype(float) @ other.astype(float)).argmax(-1)
    assert (wrong != BEST).any()
    found = judged(written(tmp_path / "a", argmax(keepdims=0), BEST, constants={"w": other}))
    assert found["parity.exact"].status == "fail"


@pytest.mark.parametrize(("reviewed", "status"), [(OTHER, "pass"), (WORST, "fail")])
def test_a_golden_whose_index_flips_at_a_tie_has_not_drifted(tmp_path: Path, reviewed: np.ndarray, status: str) -> None:
    then, _ = written(tmp_path / "then", argmax(keepdims=0), reviewed)
    golden.accept(then.folder, tmp_path / "golden" / "linear")
    now, job = written(tmp_path / "now", argmax(keepdims=0), BEST)
    request = VerifyRequest(artifact=str(now.folder), target=CPU, job=job, golden=str(tmp_path / "golden" / "linear"))
    found = {one.rule: one for one in verify(request, lambda _: None).findings}
    assert found["golden.drift"].status == status
    assert ("inner value scores" in found["golden.drift"].message) == (status == "pass")


def test_what_has_no_twin_is_not_excused_and_no_fault_of_ours(tmp_path: Path) -> None:
    nodes = [helper.make_node("Gelu", ["scores"], ["g"], domain="com.microsoft")]
    nodes += [helper.make_node("ArgMax", ["g"], ["y"], axis=-1, keepdims=0)]
    found = judged(written(tmp_path / "a", nodes, OTHER, domains={"com.microsoft": 1}))["parity.exact"]
    assert found.status == "fail"
    assert "return the scores" in found.hint


def test_choices_are_found_through_what_hands_indices_on() -> None:
    def graph(*nodes: onnx.NodeProto) -> onnx.GraphProto:
        return helper.make_graph(list(nodes), "g", [], [])

    picked = helper.make_node("TopK", ["s", "k"], ["v", "i"])
    cast = helper.make_node("Cast", ["i"], ["y"], to=TensorProto.INT32)
    assert [(one.operator, one.scores) for one in choices(graph(picked, cast), "y")] == [("TopK", ("s",))]
    assert choices(graph(picked), "v") == []
    assert choices(graph(picked, helper.make_node("Add", ["i", "one"], ["y"])), "y") == []
    assert choices(graph(picked), "nowhere") == []
