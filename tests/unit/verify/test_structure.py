from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from onnx_ci.artifact import layout
from onnx_ci.artifact.layout import Artifact
from onnx_ci.records.result import Finding
from onnx_ci.records.source_map import Origin, SourceMap
from onnx_ci.verify import structure
from onnx_ci.verify.session import RuntimeFault, open_session

from .artifacts import CPU, linear_model, model_of, value, write_artifact


def statuses(findings: list[Finding]) -> dict[str, str]:
    return {one.rule: one.status for one in findings}


def rewrite(artifact: Artifact, model: onnx.ModelProto) -> structure.Structure:
    onnx.save(model, artifact.folder / layout.MODEL)
    layout.write_manifest(artifact.folder)
    return structure.check_files(artifact, [])


def test_a_healthy_artifact_passes_every_rule(healthy: Artifact) -> None:
    found = structure.check_files(healthy, [])
    assert found.model is not None
    assert statuses(found.findings + found.open_questions) == {
        "structure.digest": "pass",
        "structure.external-data": "pass",
        "structure.checker": "pass",
        "structure.local-path": "pass",
        "structure.domain": "pass",
        "structure.inference": "pass",
    }


def test_a_changed_file_ends_the_stage(healthy: Artifact) -> None:
    with (healthy.folder / layout.MODEL).open("ab") as stream:
        stream.write(b"\0")
    found = structure.check_files(healthy, [])
    assert statuses(found.findings) == {"structure.digest": "fail"}
    assert found.model is None
    assert found.findings[0].subject == "model.onnx"


def test_an_added_file_only_warns(healthy: Artifact) -> None:
    (healthy.folder / ".DS_Store").write_bytes(b"x")
    found = structure.check_files(healthy, [])
    assert statuses(found.findings)["structure.digest"] == "warn"
    assert found.model is not None


@pytest.mark.parametrize("content", [None, b"", b"[]", b"{", b'{"model.onnx": 3}'])
def test_a_manifest_that_cannot_be_read_is_an_error(healthy: Artifact, content: bytes | None) -> None:
    manifest = healthy.folder / layout.MANIFEST
    manifest.unlink()
    if content is not None:
        manifest.write_bytes(content)
    assert statuses(structure.check_files(healthy, []).findings) == {"structure.digest": "error"}


def test_a_missing_data_file_is_named(tmp_path: Path) -> None:
    artifact = write_artifact(tmp_path / "a", external=True)
    assert statuses(structure.check_files(artifact, []).findings)["structure.external-data"] == "pass"
    (artifact.folder / layout.DATA).unlink()
    assert "model.onnx.data is missing" in structure.check_files(artifact, []).findings[0].message
    layout.write_manifest(artifact.folder)
    found = structure.check_files(artifact, [])
    assert statuses(found.findings) == {"structure.digest": "pass", "structure.external-data": "fail"}
    assert "model.onnx.data is missing" in found.findings[-1].message


def test_external_data_outside_the_folder_is_refused_before_anything_opens_it(tmp_path: Path) -> None:
    artifact = write_artifact(tmp_path / "a", external=True)
    os.link(artifact.folder / layout.DATA, tmp_path / "second-name")
    assert statuses(structure.check_files(artifact, []).findings)["structure.external-data"] == "fail"


@pytest.mark.parametrize("cut", [0, 1, 40, 200])
def test_a_truncated_file_fails_the_checker(healthy: Artifact, cut: int) -> None:
    path = healthy.folder / layout.MODEL
    path.write_bytes(path.read_bytes()[:cut])
    layout.write_manifest(healthy.folder)
    found = structure.check_files(healthy, [])
    assert statuses(found.findings)["structure.checker"] == "fail"
    assert found.model is None


def test_garbage_fails_the_checker(healthy: Artifact) -> None:
    (healthy.folder / layout.MODEL).write_bytes(b"garbage" * 99)
    layout.write_manifest(healthy.folder)
    assert statuses(structure.check_files(healthy, []).findings)["structure.checker"] == "fail"


def test_a_file_newer_than_the_installed_onnx_is_not_called_broken(healthy: Artifact) -> None:
    model = linear_model()
    model.ir_version = onnx.IR_VERSION + 1
    assert statuses(rewrite(healthy, model).findings)["structure.checker"] == "warn"


def test_wrong_shapes_that_only_strict_inference_sees_are_settled_by_the_runtime(healthy: Artifact) -> None:
    model = linear_model()
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 7
    found = rewrite(healthy, model)
    assert statuses(found.findings)["structure.checker"] == "pass"
    assert statuses(found.open_questions)["structure.inference"] == "fail"
    assert statuses(structure.settle(found.open_questions, opened=True))["structure.inference"] == "warn"
    assert statuses(structure.settle(found.open_questions, opened=False))["structure.inference"] == "fail"


def foreign_model() -> onnx.ModelProto:
    return model_of(
        [helper.make_node("Swirl", ["x"], ["y"], name="node_swirl", domain="my.ops")],
        [value("x", TensorProto.FLOAT, ["n"])],
        [value("y", TensorProto.FLOAT, ["n"])],
        domains={"my.ops": 1},
    )


def test_an_operator_of_an_undeclared_domain_is_named(healthy: Artifact) -> None:
    found = rewrite(healthy, foreign_model())
    domain = next(one for one in found.open_questions if one.rule == "structure.domain")
    assert domain.status == "fail"
    assert "my.ops:Swirl" in domain.message
    assert statuses(structure.check_files(healthy, ["libmy.so"]).open_questions)["structure.domain"] == "pass"


def test_an_operator_that_a_function_of_the_file_defines_is_no_foreign_one(healthy: Artifact) -> None:
    model = foreign_model()
    body = [helper.make_node("Neg", ["a"], ["b"])]
    model.functions.append(helper.make_function("my.ops", "Swirl", ["a"], ["b"], body, [helper.make_opsetid("", 20)]))
    assert statuses(rewrite(healthy, model).open_questions)["structure.domain"] == "pass"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('File "/work/model.py", line 3, in forward\n  return x', "fail"),
        ("/src/model.py(12): forward", "fail"),
        ("C:\\Users\\me\\model.py", "fail"),
        ("made from /home/me/checkpoints/best", "warn"),
        ("/layer1/conv/Conv", "pass"),
        ("Licence: MIT, see https://example.org/home/me", "pass"),
        ("['', 'blocks.1', 'gelu_1']", "pass"),
    ],
)
def test_local_paths_and_source_text(healthy: Artifact, text: str, status: str) -> None:
    model = linear_model()
    model.graph.node[0].metadata_props.add(key="pkg.torch.onnx.stack_trace", value=text)
    assert statuses(rewrite(healthy, model).findings)["structure.local-path"] == status
    model = linear_model()
    model.doc_string = text
    assert statuses(rewrite(healthy, model).findings)["structure.local-path"] == status


def bfloat16_gemm() -> onnx.ModelProto:
    return model_of(
        [helper.make_node("Gemm", ["x", "x"], ["y"], name="node_linear")],
        [value("x", TensorProto.BFLOAT16, [3, 3])],
        [value("y", TensorProto.BFLOAT16, [3, 3])],
    )


def test_a_missing_kernel_names_operator_dtype_and_source_line(healthy: Artifact) -> None:
    model = bfloat16_gemm()
    rewrite(healthy, model)
    with pytest.raises(RuntimeFault) as caught:
        open_session(healthy.model, CPU)
    origins = SourceMap(
        schema_version=1,
        values={"y": Origin(node="node_linear", op="Gemm", file="model.py", line=14, module="fc")},
    )
    found = structure.not_opened(caught.value, CPU.provider, model, origins)
    assert found.status == "fail"
    assert found.message == (
        f"the file is valid ONNX, but CPUExecutionProvider of onnxruntime {onnxruntime.__version__} has no kernel for "
        f'Gemm(13) of bfloat16 at opset {model.opset_import[0].version} (node "node_linear" of module "fc"): '
        "a service on this provider can't load it"
    )
    assert "float32" in found.hint
    assert found.data["step"] == "session load"
    assert (found.file, found.line) == ("model.py", 14)


def test_an_operator_nobody_knows_is_told_apart_from_a_missing_kernel(healthy: Artifact) -> None:
    model = foreign_model()
    rewrite(healthy, model)
    with pytest.raises(RuntimeFault) as caught:
        open_session(healthy.model, CPU)
    assert caught.value.kind == "no-operator"
    found = structure.not_opened(caught.value, CPU.provider, model, SourceMap(schema_version=1))
    assert "my.ops:Swirl is not a registered" in found.message.replace("(-1)", "")
    assert "custom_ops" in found.hint


@pytest.mark.parametrize("kind", ["memory", "library", "device"])
def test_a_fault_of_the_machine_says_nothing_about_the_file(kind: str) -> None:
    found = structure.not_opened(RuntimeFault(kind, "…"), CPU.provider, linear_model(), SourceMap(schema_version=1))
    assert found.status == "error"


def test_weights_inside_the_file_are_let_go_once_it_is_checked(healthy: Artifact) -> None:
    model = linear_model()
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((40, 40), np.float32), "big"))
    found = rewrite(healthy, model)
    assert found.model is not None
    held = {item.name: (list(item.dims), len(item.raw_data)) for item in found.model.graph.initializer}
    assert held == {"weight": ([3, 2], 24), "bias": ([2], 8), "big": ([40, 40], 0)}


def test_changed_files_come_before_added_ones(healthy: Artifact) -> None:
    (healthy.folder / "a.txt").write_bytes(b"added")
    (healthy.folder / layout.CASES).write_bytes(b"changed")
    found = structure.check_files(healthy, []).findings[0]
    assert (found.status, found.subject) == ("fail", layout.CASES)


def test_weights_beside_the_model_are_read_by_no_check(tmp_path: Path) -> None:
    big = np.zeros((3, 2), np.float32)
    artifact = write_artifact(tmp_path / "a", model=linear_model(weight=big), external=True)
    found = structure.check_files(artifact, [])
    assert found.model is not None
    assert not found.model.graph.initializer[0].raw_data
