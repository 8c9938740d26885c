"""The row of the deployment's own options: its findings, its figures and its budget."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onnx_ci.artifact.layout import Artifact
from onnx_ci.numerics import parity
from onnx_ci.numerics.dtypes import float_dtype_named, let_in
from onnx_ci.records.cases import Case
from onnx_ci.records.messages import DeployedRequest, VerifyRequest
from onnx_ci.records.model import ParitySpec, TargetSpec, Tolerance
from onnx_ci.verify import deployed
from onnx_ci.verify.job import verify

from .artifacts import CPU, GPU, linear_job, write_artifact

LOOSE = replace(CPU, deterministic=False)
"""A target whose options loosen the arithmetic by name only: what is judged stays the same."""


def request(artifact: Artifact, target: TargetSpec = LOOSE) -> VerifyRequest:
    job = replace(linear_job(), targets=[target])
    job = replace(job, latency=replace(job.latency, budget_seconds=0.02))
    return VerifyRequest(artifact=str(artifact.folder), target=target, job=job)


def test_provider_and_latency_are_left_to_the_targets_own_options(healthy: Artifact) -> None:
    asked = request(healthy)
    result = verify(asked, lambda stage: None)
    assert {one.stage for one in result.findings}.isdisjoint({"provider", "latency"})
    assert result.status == "pass"
    found = deployed.deployed(DeployedRequest(verify=asked), lambda stage: None)
    rules = {one.rule: one for one in found.findings}
    assert {"parity.deployed", "provider.active", "provider.placement", "latency.measured"} == rules.keys()
    assert {one.status for one in found.findings} == {"pass"}
    assert rules["parity.deployed"].message.startswith("with deterministic = false: ")
    assert rules["provider.active"].data["deterministic"] is False
    assert {one.options for one in found.figures} == {"deterministic = false"}
    assert {one.options for one in result.parity} == {""}


def test_one_row_is_enough_where_nothing_loosens(healthy: Artifact) -> None:
    result = verify(request(healthy, CPU), lambda stage: None)
    assert {"provider", "latency"} <= {one.stage for one in result.findings}


def test_no_time_is_taken_where_strict_parity_failed(healthy: Artifact) -> None:
    found = deployed.deployed(DeployedRequest(verify=request(healthy), broken=["parity"]), lambda stage: None)
    (latency,) = [one for one in found.findings if one.stage == "latency"]
    assert (latency.status, "parity did not pass" in latency.message) == ("skip", True)


def test_an_artifact_of_which_no_case_runs_is_no_pass(tmp_path) -> None:
    artifact = write_artifact(tmp_path / "empty", cases=[])
    found = deployed.deployed(DeployedRequest(verify=request(artifact)), lambda stage: None)
    assert [one.status for one in found.findings if one.rule == "parity.deployed"] == ["error"]


@pytest.mark.parametrize(
    ("target", "budget", "rounding"),
    [
        (GPU, 4.0, "float16"),
        (replace(GPU, budget=64.0), 64.0, ""),
        (replace(CPU, session={"session.set_denormal_as_zero": 1}), 4.0, ""),
        (replace(GPU, options={"use_tf32": 0}), 4.0, ""),
    ],
)
def test_the_budget_is_the_targets_or_that_of_its_rounding(target: TargetSpec, budget: float, rounding: str) -> None:
    spec = deployed.spec_of(ParitySpec(), target)
    assert (spec.budget, spec.rounding) == (budget, rounding)


@pytest.mark.parametrize(
    ("dtype", "rounding", "judged"),
    [
        ("float32", "float16", "float16"),
        ("float32", "bfloat16", "bfloat16"),
        ("float32", "", "float32"),
        ("float16", "float16", "float16"),
        ("bfloat16", "float16", "bfloat16"),
        ("float64", "float16", "float64"),
    ],
)
def test_a_rounding_is_let_in_where_it_is_narrower(dtype: str, rounding: str, judged: str) -> None:
    assert let_in(float_dtype_named(dtype), rounding) == float_dtype_named(judged)


def status_of(error: float, spec: ParitySpec) -> str:
    """What is said of an output that errs by so much, relatively, where PyTorch errs by 1e-7."""
    exact = np.random.default_rng(7).normal(size=(4, 300))
    noise = np.random.default_rng(8).normal(size=exact.shape)
    expected = (exact * (1 + 1e-7 * noise)).astype(np.float32)
    case = Case(index=0, name="example", origin="example", why="", dims={}, outputs=[])
    actual = (exact * (1 + error * noise)).astype(np.float32)
    compared = parity.compare_case(case, {"y": expected}, {"y": actual}, {"y": exact}, spec)
    findings, _ = parity.judge([compared], spec)
    return next(one.status for one in deployed.told(findings, {"use_tf32": "float16"}, GPU))


def test_the_rounding_of_tf32_passes_its_row_and_not_the_strict_one() -> None:
    tf32 = deployed.spec_of(ParitySpec(), GPU)
    assert status_of(5e-4, ParitySpec()) == "fail"
    assert status_of(5e-4, tf32) == "pass"
    assert status_of(5e-2, tf32) == "fail"
    assert status_of(5e-4, deployed.spec_of(ParitySpec(), replace(GPU, budget=8.0))) == "fail"


def test_a_tolerance_by_hand_is_for_strict_arithmetic() -> None:
    by_hand = ParitySpec(outputs={"y": Tolerance(rtol=1e-6, atol=1e-6, reason="tight")})
    assert status_of(5e-4, by_hand) == "fail"
    assert deployed.spec_of(by_hand, GPU).outputs == by_hand.outputs
