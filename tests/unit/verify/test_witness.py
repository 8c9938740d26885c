"""Where nodes run, told by ONNX Runtime itself, also where it keeps no record of its assignment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from onnx_ci.artifact.layout import Artifact
from onnx_ci.records.model import CPU as CPU_NAME
from onnx_ci.records.model import TargetSpec
from onnx_ci.records.result import Finding
from onnx_ci.records.source_map import Origin
from onnx_ci.verify import bench, witness
from onnx_ci.verify.opener import Opener

from .artifacts import CPU, MadeCase, linear_case, model_of, value, write_artifact

REMOTE = TargetSpec(name="remote", provider="AzureExecutionProvider")
"""In every build for the CPU, and without a kernel of its own."""


def without_record(artifact: Artifact, target: TargetSpec, *, cases: bool = True) -> dict[str, Finding]:
    """What is found where the session does not tell."""
    model = onnx.load(artifact.model, load_external_data=False)
    origins = {"node_matmul": Origin(node="node_matmul", op="MatMul", file="m.py", line=7)}
    listed = artifact.cases().cases if cases else []
    found = witness.judge(None, Opener(artifact, target), model, listed, origins)
    return {one.rule: one for one in found}


def test_the_profile_of_a_run_names_the_strays_and_their_time(healthy: Artifact) -> None:
    found = without_record(healthy, REMOTE)
    placed, fallback = found["provider.placement"], found["provider.fallback"]
    assert placed.data["witness"] == "profile"
    assert set(placed.data["nodes"]) == {CPU_NAME}
    assert "as they ran in a profile of the example" in placed.message
    assert fallback.status == "fail"
    assert 0.01 < fallback.data["share"] <= 1.0
    assert fallback.file == "m.py"


def test_the_profile_honours_what_may_run_on_the_cpu(healthy: Artifact) -> None:
    allowed = replace(REMOTE, cpu_ops=["MatMul", "Add", "Gemm", "FusedMatMul"])
    assert without_record(healthy, allowed)["provider.fallback"].status == "pass"


def test_a_session_that_may_not_use_the_cpu_is_a_witness(tmp_path: Path) -> None:
    # Nothing is left of this graph when its constants are folded, so that no node is left to the CPU.
    node = helper.make_node(
        "Constant", [], ["y"], name="constant", value=helper.make_tensor("v", TensorProto.FLOAT, [1], [2.0])
    )
    model = model_of([node], [value("x", TensorProto.FLOAT, [1])], [value("y", TensorProto.FLOAT, [1])])
    whole = linear_case()
    case = MadeCase("example", {"x": whole.inputs["x"][0, :1]}, {"y": whole.outputs["y"][0, :1]}, None)
    found = without_record(write_artifact(tmp_path / "constant", model=model, cases=[case]), REMOTE)
    assert found["provider.placement"].data["witness"] == "probe"
    assert "a session that may not use the CPU opens" in found["provider.placement"].message
    assert found["provider.fallback"].status == "pass"


def test_without_a_case_nothing_is_told(healthy: Artifact) -> None:
    found = without_record(healthy, REMOTE, cases=False)
    assert {rule: one.status for rule, one in found.items()} == {"provider.placement-unknown": "warn"}


def test_the_cpu_alone_needs_no_witness(healthy: Artifact) -> None:
    found = without_record(healthy, CPU, cases=False)
    assert {rule: one.status for rule, one in found.items()} == {"provider.placement": "pass"}
    assert "the session's only provider" in found["provider.placement"].message


@pytest.mark.parametrize(("threads", "cores", "told"), [(1, 1, False), (4, 4, False), (3, 2, True), (2, 1, True)])
def test_more_threads_than_cores_are_told(threads: int, cores: int, told: bool) -> None:
    found = bench.oversubscribed(replace(CPU, threads=threads), cores)
    assert [one.status for one in found] == ["warn"] * told
    assert all(one.data == {"threads": threads, "cores": cores} for one in found)
