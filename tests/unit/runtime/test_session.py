"""The session of a service: what would be noticed in production only is refused at startup."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from onnx_ci.artifact import layout
from onnx_ci.artifact.layout import ArtifactError
from onnx_ci.records.model import JobSpec, ModelSpec, TargetSpec
from onnx_ci.runtime import ContractError, SessionRefusedError, open_session

from .contracts import contract, dim, tensor

CPU = TargetSpec(name="cpu", provider="CPUExecutionProvider", threads=2)
GPU = TargetSpec(name="gpu", provider="CUDAExecutionProvider")
ELSEWHERE = TargetSpec(name="azure", provider="AzureExecutionProvider")  # in every build, and has no kernel of its own


def write(folder: Path, *, targets=(CPU,), version: str = onnxruntime.__version__) -> Path:
    """y = relu(x), flattened by its own shape."""
    folder.mkdir()
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="node_relu"),
        helper.make_node("Shape", ["r"], ["s"], name="node_shape", end=1),
        helper.make_node("Concat", ["s", "rest"], ["to"], name="node_concat", axis=0),
        helper.make_node("Reshape", ["r", "to"], ["y"], name="node_reshape"),
    ]
    graph = helper.make_graph(
        nodes,
        "main",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 6])],
        [helper.make_tensor("rest", TensorProto.INT64, [1], [-1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save_model(model, str(folder / layout.MODEL))
    made = contract([tensor("x", "float32", ["batch", 2, 3])], {"batch": dim(1, 4)}, model="flat")
    packages = {**made.environment.packages, "onnxruntime": version}
    made = replace(made, environment=replace(made.environment, packages=packages))
    layout.write_record(folder, layout.CONTRACT, made)
    job = JobSpec(model=ModelSpec(name="flat", entrypoint="model.py:build"), targets=list(targets))
    layout.write_record(folder, layout.CONFIG, job)
    layout.write_manifest(folder)
    return folder


def test_it_runs_what_the_contract_allows_and_nothing_else(tmp_path: Path) -> None:
    served = open_session(write(tmp_path / "flat"))
    outputs = served.run({"x": np.ones((4, 2, 3), np.float32)})
    assert {name: value.shape for name, value in outputs.items()} == {"y": (4, 6)}
    assert list(served.run({"x": np.ones((1, 2, 3), np.float32)}, ["y"])) == ["y"]
    with pytest.raises(ContractError, match="allowed are 1 to 4"):
        served.run({"x": np.ones((5, 2, 3), np.float32)})
    assert served.contract.model == "flat"


def test_threads_are_the_targets(tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    open_session(write(tmp_path / "flat"), session_options=options)
    assert options.intra_op_num_threads == 2


def test_the_digest_that_the_gate_reported_is_held(tmp_path: Path) -> None:
    folder = write(tmp_path / "flat")
    digest = layout.Artifact(folder).digest()
    assert open_session(folder, digest=digest).digest == digest
    with pytest.raises(ArtifactError, match="was asked for"):
        open_session(folder, digest="0" * 64)


@pytest.mark.parametrize("name", [layout.MODEL, layout.CONTRACT])
def test_changed_bytes_are_not_opened(tmp_path: Path, name) -> None:
    folder = write(tmp_path / "flat")
    (folder / name).write_bytes((folder / name).read_bytes() + b" ")
    with pytest.raises(ArtifactError, match=f"{name} is not the exported one"):
        open_session(folder)


def test_a_provider_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SessionRefusedError, match="has no CUDAExecutionProvider") as caught:
        open_session(write(tmp_path / "flat", targets=[CPU, GPU]), "gpu")
    assert "CPUExecutionProvider" in str(caught.value.hint)


def test_nodes_that_would_run_elsewhere_are_named_and_shape_arithmetic_is_none(tmp_path: Path) -> None:
    folder = write(tmp_path / "flat", targets=[ELSEWHERE])
    with pytest.raises(SessionRefusedError) as caught:
        open_session(folder)
    assert "2 of its nodes would not run on AzureExecutionProvider: Relu node_relu, Reshape node_reshape" in str(
        caught.value
    )


@pytest.mark.parametrize("change", [{"fallback": "allow"}, {"cpu_ops": ["Relu", "Reshape"]}])
def test_what_the_target_allows_on_the_cpu_is_opened(tmp_path: Path, change) -> None:
    served = open_session(write(tmp_path / "flat"), replace(ELSEWHERE, **change))
    assert served.run({"x": -np.ones((1, 2, 3), np.float32)})["y"].max() == 0


def test_operators_of_other_domains_go_by_the_name_that_verify_gives_them(tmp_path: Path) -> None:
    folder = write(tmp_path / "flat")
    model = onnx.load(str(folder / layout.MODEL))
    model.graph.node[0].op_type, model.graph.node[0].domain = "Gelu", "com.microsoft"
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save_model(model, str(folder / layout.MODEL))
    layout.write_manifest(folder)
    with pytest.raises(SessionRefusedError, match=r"com\.microsoft:Gelu node_relu"):
        open_session(folder, replace(ELSEWHERE, cpu_ops=["Gelu", "Reshape"]))
    assert open_session(folder, replace(ELSEWHERE, cpu_ops=["com.microsoft:Gelu", "Reshape"]))


def test_another_runtime_than_the_proved_one_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "flat", version="1.7.3")
    with pytest.raises(SessionRefusedError, match=r"proved on 1\.7\.3"):
        open_session(folder)
    assert open_session(folder, any_version=True).run({"x": np.ones((1, 2, 3), np.float32)})


def test_a_patch_release_is_the_proved_one(tmp_path: Path) -> None:
    major, minor, *_ = onnxruntime.__version__.split(".")
    assert open_session(write(tmp_path / "flat", version=f"{major}.{minor}.99"))


@pytest.mark.parametrize(("asked", "said"), [("", "several targets: cpu, gpu"), ("tpu", "no target tpu")])
def test_the_target_must_be_one(tmp_path: Path, asked, said) -> None:
    with pytest.raises(ArtifactError, match=said):
        open_session(write(tmp_path / "flat", targets=[CPU, GPU]), asked)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"manifest\.json is missing"):
        open_session(tmp_path)
