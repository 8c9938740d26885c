"""Calibration in real sessions over artifacts made by hand, and where it counts afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnx_ci.artifact.layout import Artifact
from onnx_ci.errors import OnnxCiError
from onnx_ci.records.calibration import Calibration
from onnx_ci.records.environment import Environment
from onnx_ci.records.messages import Calibrated, CalibrateRequest, VerifyRequest
from onnx_ci.records.model import JobSpec, ParitySpec, TargetSpec, Tolerance
from onnx_ci.verify import calibrated
from onnx_ci.verify.calibrate import calibrate
from onnx_ci.verify.job import verify

from .artifacts import (
    CPU,
    ENVIRONMENT,
    GPU,
    WEIGHT,
    MadeCase,
    contract_of,
    linear_job,
    linear_model,
    model_of,
    write_artifact,
)
from .artifacts import value as tensor

RUNS = Environment(onnx_ci="1", python="3.11", platform="", cpu="", cores=1, packages={"onnxruntime": "1.32.0"})


def run(artifact: Artifact, job: JobSpec | None = None, target: TargetSpec = CPU) -> Calibrated:
    return calibrate(CalibrateRequest(artifact=str(artifact.folder), target=target, job=job or linear_job()), print)


def cancelling(folder: Path, *, times: float = 1.0) -> Artifact:
    """A model that loses digits: y = (x + 1000) - 1000. The stored outputs of PyTorch err `times` as much as the file.

    So a file that errs five times as much as PyTorch is one beside whose outputs PyTorch's err a fifth.
    """
    x = np.random.default_rng(3).normal(size=(64, 4)).astype(np.float32)
    big = np.float32(1000)
    exact = x.astype(np.float64)
    torch = (x + big) - big
    kept = exact + times * (torch - exact) if times != 1.0 else torch
    model = model_of(
        [helper.make_node("Add", ["x", "big"], ["a"]), helper.make_node("Sub", ["a", "big"], ["y"])],
        [tensor("x", TensorProto.FLOAT, ["batch", 4])],
        [tensor("y", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor("big", TensorProto.FLOAT, [], [1000.0])],
    )
    return write_artifact(
        folder, model=model, cases=[MadeCase("one", {"x": x}, {"y": kept.astype(np.float32)}, {"y": exact})]
    )


def test_every_output_has_its_ratio_under_the_conditions_it_was_seen_in(tmp_path: Path) -> None:
    artifact = cancelling(tmp_path / "m")
    answer = run(artifact)
    assert answer.refused == {}
    found = answer.calibration
    assert found is not None
    assert found.observed == {"y": pytest.approx(1.0, abs=0.15)}
    assert found.artifact == artifact.digest()
    assert found.contract == calibrated.contract_digest(artifact.contract())
    assert found.versions["onnxruntime"]
    assert found.versions["torch"] == "2.13.0"
    assert found.cases.keys() == {"one"}
    levels = {one.partition(",")[0] for one in found.runs}
    assert levels == {f"optimization {name}" for name in ("disabled", "basic", "extended", "all")}


def test_below_the_floor_nothing_is_needed(healthy: Artifact) -> None:
    found = run(healthy).calibration
    assert found is not None
    assert found.observed == {"y": 0.0}


def test_a_ratio_beyond_16_is_refused(tmp_path: Path) -> None:
    answer = run(cancelling(tmp_path / "m", times=1 / 20))
    assert list(answer.refused) == ["y"]
    assert "relL2" in answer.refused["y"]
    assert answer.calibration is not None
    assert answer.calibration.observed == {}


def test_a_wrong_model_is_not_calibrated_into_being_right(tmp_path: Path) -> None:
    answer = run(write_artifact(tmp_path / "m", model=linear_model(weight=WEIGHT * np.float32(1.01))))
    assert list(answer.refused) == ["y"]
    assert answer.calibration is not None
    assert answer.calibration.observed == {}


def test_another_function_is_refused_though_it_errs_less_than_16_times(tmp_path: Path) -> None:
    """A weight that is a little off, where PyTorch errs so much that the budget alone would take it."""
    x = np.random.default_rng(3).normal(size=(64, 4)).astype(np.float32)
    exact = x.astype(np.float64) * 3
    noisy = (exact * (1 + 1e-4 * np.random.default_rng(4).normal(size=exact.shape))).astype(np.float32)
    model = model_of(
        [helper.make_node("Mul", ["x", "weight"], ["y"])],
        [tensor("x", TensorProto.FLOAT, ["batch", 4])],
        [tensor("y", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor("weight", TensorProto.FLOAT, [], [3.001])],
    )
    answer = run(
        write_artifact(tmp_path / "m", model=model, cases=[MadeCase("one", {"x": x}, {"y": noisy}, {"y": exact})])
    )
    assert list(answer.refused) == ["y"]
    assert answer.calibration is not None
    assert answer.calibration.observed == {}


def test_what_a_manual_tolerance_judges_is_neither_calibrated_nor_refused(tmp_path: Path) -> None:
    manual = {"y": Tolerance(rtol=0.1, atol=0.1, reason="reviewed")}
    answer = run(cancelling(tmp_path / "m", times=1 / 20), linear_job(parity=ParitySpec(outputs=manual)))
    assert answer.refused == {}
    assert answer.calibration is not None
    assert answer.calibration.observed == {}


def test_a_changed_file_is_never_run(healthy: Artifact) -> None:
    healthy.model.write_bytes(healthy.model.read_bytes() + b"\n")
    with pytest.raises(OnnxCiError, match="not sound"):
        run(healthy)


def test_nothing_is_calibrated_without_cases(tmp_path: Path) -> None:
    artifact = write_artifact(tmp_path / "m", cases=[])
    with pytest.raises(OnnxCiError, match="no case"):
        run(artifact)


def test_a_provider_that_is_not_there_is_said(healthy: Artifact) -> None:
    answer = run(healthy, target=GPU)
    assert answer.calibration is None
    assert "CUDAExecutionProvider" in answer.absent


def made(artifact: Artifact, **changes: object) -> Calibration:
    found = run(artifact).calibration
    assert found is not None
    return replace(found, **{"observed": {"y": 3.1}, **changes})


def judged(artifact: Artifact, calibration: Calibration, target: str = "cpu") -> dict[str, tuple[str, str]]:
    job = linear_job(parity=ParitySpec(calibrations={target: calibration}))
    result = verify(VerifyRequest(artifact=str(artifact.folder), target=CPU, job=job), lambda _: None)
    return {one.rule: (one.status, one.message) for one in result.findings if one.stage == "parity"}


def test_a_committed_calibration_is_what_the_leg_is_judged_by(tmp_path: Path) -> None:
    artifact = cancelling(tmp_path / "m", times=1 / 5)
    assert judged(artifact, made(artifact, observed={}))["parity.runtime"][0] == "fail"
    found = judged(artifact, made(artifact, observed={"y": 3.1}))
    assert found["parity.calibration"][0] == "pass"
    assert "budget y 6.2; calibrated on" in found["parity.calibration"][1]
    assert found["parity.runtime"][0] == "pass"
    assert "budget 6.2 (calibrated on" in found["parity.runtime"][1]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"versions": {"onnxruntime": "1.31.0"}}, 'onnxruntime was "1.31.0", is'),
        ({"contract": "0" * 64}, "another contract"),
        ({"provider": "CUDAExecutionProvider"}, 'provider was "CUDAExecutionProvider"'),
        ({"options": {"use_tf32": 0}}, "use_tf32"),
    ],
)
def test_one_that_was_made_under_other_conditions_loosens_nothing(tmp_path: Path, changed: dict, said: str) -> None:
    artifact = cancelling(tmp_path / "m", times=1 / 5)
    found = judged(artifact, made(artifact, **changed))
    assert found["parity.calibration"][0] == "warn"
    assert said in found["parity.calibration"][1]
    assert found["parity.runtime"][0] == "fail"
    assert "calibrated" not in found["parity.runtime"][1]


def test_one_of_another_target_counts_nothing(tmp_path: Path) -> None:
    artifact = cancelling(tmp_path / "m", times=1 / 5)
    found = judged(artifact, made(artifact), target="gpu")
    assert "parity.calibration" not in found
    assert found["parity.runtime"][0] == "fail"


def test_local_versions_are_no_others() -> None:
    contract = contract_of(linear_model(), linear_job())
    built = replace(contract, environment=replace(ENVIRONMENT, packages={"torch": "2.13.0+cpu"}))
    assert calibrated.versions(built, RUNS) == {"torch": "2.13.0", "onnxruntime": "1.32.0"}
