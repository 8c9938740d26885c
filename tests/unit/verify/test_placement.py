from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_ci.artifact import dataflow
from onnx_ci.artifact.layout import Artifact
from onnx_ci.records.model import CPU as CPU_NAME
from onnx_ci.records.model import TargetSpec
from onnx_ci.records.source_map import Origin
from onnx_ci.runtime.placement import PlacedNode
from onnx_ci.verify import placement, profile
from onnx_ci.verify.session import open_session

from .artifacts import CPU, GPU, linear_case, model_of, value

CUDA = GPU.provider


def nodes(**where: str) -> list[PlacedNode]:
    return [PlacedNode(name, name.partition("_")[0], provider) for name, provider in where.items()]


def judged(placed: list[PlacedNode], target: TargetSpec = GPU, *, shapes: set[str] = frozenset(), share=None):
    found = placement.judge(
        placed, target, shapes, share, {"Conv_1": Origin(node="Conv_1", op="Conv", file="m.py", line=7)}
    )
    return {one.rule: one for one in found}


def test_a_missing_provider_is_an_error_that_says_what_is_there_and_what_to_install() -> None:
    found = placement.missing(GPU, ["CPUExecutionProvider"], [CUDA, CPU_NAME], {"onnxruntime": "1.32.0", "onnx": "1"})
    assert found is not None
    assert found.status == "error"
    assert "onnxruntime 1.32.0 has CPUExecutionProvider; nothing was measured" in found.message
    assert "pip install onnxruntime-gpu" in found.hint


def test_a_misspelt_provider_gets_a_suggestion() -> None:
    target = TargetSpec(name="gpu", provider="CudaExecutionProvider")
    found = placement.missing(target, [CPU_NAME], [CUDA, CPU_NAME], {})
    assert found is not None
    assert "did you mean CUDAExecutionProvider?" in found.hint


def test_two_runtimes_at_once_are_named() -> None:
    found = placement.missing(GPU, [CPU_NAME], [CUDA], {"onnxruntime": "1.32.0", "onnxruntime-gpu": "1.31.0"})
    assert found is not None
    assert "overwrite each other" in found.hint


def test_an_installed_provider_is_not_missing() -> None:
    assert placement.missing(CPU, [CPU_NAME], [CPU_NAME], {}) is None


def test_a_session_that_took_another_provider_is_an_error() -> None:
    assert placement.active(GPU, [CPU_NAME], {}, {}).status == "error"
    found = placement.active(GPU, [CUDA, CPU_NAME], {"use_tf32": "1"}, {"NVIDIA_TF32_OVERRIDE": "0"})
    assert found.status == "pass"
    assert "use_tf32=1" in found.message
    assert found.data["options"] == {"use_tf32": "1"}
    assert found.data["environment"] == {"NVIDIA_TF32_OVERRIDE": "0"}
    assert (found.data["threads"], found.data["optimization"], found.data["deterministic"]) == (1, "all", True)


def test_what_is_allowed_on_the_cpu_is_shown_with_its_reason() -> None:
    target = TargetSpec(name="gpu", provider=CUDA, cpu_ops=["Det", "Erf"], cpu_reasons={"Det": "no kernel in CUDA"})
    found = judged(nodes(Conv_1=CUDA, Det_1=CPU_NAME, Det_2=CPU_NAME), target)["provider.fallback"]
    assert found.status == "pass"
    assert found.message.endswith("allowed on the CPU: 2 × Det (no kernel in CUDA)")
    assert found.data["allowed"] == {"Det": 2}


def test_a_provider_that_does_not_come_up_may_refuse_its_options() -> None:
    target = TargetSpec(name="npu", provider="OpenVINOExecutionProvider", options={"precision": "FP16"})
    found = placement.active(target, [CPU_NAME], {}, {})
    assert "takes none of these options: precision" in found.hint
    assert "nvidia-smi" not in found.hint
    assert "nvidia-smi" in placement.active(GPU, [CPU_NAME], {}, {}).hint


def test_all_nodes_on_the_asked_provider_pass() -> None:
    found = judged(nodes(Conv_1=CUDA, Relu_1=CUDA))
    assert found["provider.fallback"].status == "pass"
    assert found["provider.placement"].data["nodes"] == {CUDA: 2}


def test_shape_arithmetic_and_cpu_ops_are_no_fallback() -> None:
    target = TargetSpec(name="gpu", provider=CUDA, cpu_ops=["NonMaxSuppression"])
    placed = nodes(Conv_1=CUDA, Gather_1=CPU_NAME, NonMaxSuppression_1=CPU_NAME, Shape_9=CPU_NAME)
    assert judged(placed, target, shapes={"Gather_1"})["provider.fallback"].status == "pass"


@pytest.mark.parametrize(
    ("share", "status"),
    [(None, "warn"), (0.0, "warn"), (0.0099, "warn"), (0.011, "fail"), (1.0, "fail"), (float("nan"), "fail")],
)
def test_a_stray_node_fails_by_its_share_of_the_time(share: float | None, status: str) -> None:
    found = judged(nodes(Conv_1=CPU_NAME, Relu_1=CUDA), share=share)["provider.fallback"]
    assert found.status == status
    assert "1 × Conv" in found.message
    assert (found.file, found.line) == ("m.py", 7)


def test_fallback_may_be_allowed() -> None:
    target = TargetSpec(name="gpu", provider=CUDA, fallback="allow")
    assert judged(nodes(Conv_1=CPU_NAME), target, share=0.9)["provider.fallback"].status == "pass"


def test_a_runtime_that_tells_nothing_is_said() -> None:
    found = placement.judge(None, GPU, set(), None, {})
    assert [(one.rule, one.status) for one in found] == [("provider.placement-unknown", "warn")]


def test_on_the_cpu_nothing_is_a_fallback() -> None:
    assert list(judged(nodes(Conv_1=CPU_NAME), CPU)) == ["provider.placement"]


def reshaping_model():
    """Flattens to a shape that it computes, scales by a few floats, and adds a row of a float table."""
    return model_of(
        [
            helper.make_node("Shape", ["x"], ["shape"], name="shape"),
            helper.make_node("Gather", ["shape", "zero"], ["batch"], name="gather"),
            helper.make_node("Unsqueeze", ["batch", "axis"], ["batch1"], name="unsqueeze"),
            helper.make_node("Concat", ["batch1", "rest"], ["target"], name="concat", axis=0),
            helper.make_node("Reshape", ["x", "target"], ["flat"], name="reshape"),
            helper.make_node("Cast", ["target"], ["scales"], name="cast", to=TensorProto.FLOAT),
            helper.make_node("ReduceSum", ["scales"], ["sum"], name="sum", keepdims=0),
            helper.make_node("Gather", ["table", "batch"], ["row"], name="table_row"),
            helper.make_node("Mul", ["flat", "sum"], ["scaled"], name="mul"),
            helper.make_node("Add", ["scaled", "row"], ["y"], name="add"),
        ],
        [value("x", TensorProto.FLOAT, ["batch", 10, 10])],
        [value("y", TensorProto.FLOAT, ["batch", 100])],
        [
            numpy_helper.from_array(np.array(0), "zero"),
            numpy_helper.from_array(np.array([0]), "axis"),
            numpy_helper.from_array(np.array([-1]), "rest"),
            numpy_helper.from_array(np.zeros((9, 100), np.float32), "table"),
        ],
    )


def test_shape_arithmetic_is_told_by_dataflow() -> None:
    assert dataflow.shape_arithmetic(reshaping_model()) == {"shape", "gather", "unsqueeze", "concat", "cast", "sum"}


def test_integer_scalars_are_shapes_and_token_ids_are_not() -> None:
    model = model_of(
        [
            helper.make_node("Add", ["count", "count"], ["more"], name="of_scalar"),
            helper.make_node("Add", ["ids", "ids"], ["z"], name="of_ids"),
        ],
        [value("count", TensorProto.INT64, []), value("ids", TensorProto.INT64, ["n"])],
        [value("more", TensorProto.INT64, []), value("z", TensorProto.INT64, ["n"])],
    )
    assert dataflow.shape_arithmetic(model) == {"of_scalar"}


def test_every_node_of_a_cpu_session_is_placed(healthy: Artifact) -> None:
    placed = open_session(healthy.model, CPU).placement()
    assert placed is not None
    assert {node.provider for node in placed} == {CPU_NAME}
    assert len(placed) >= 1


def test_a_profile_gives_the_share_of_strays(healthy: Artifact, tmp_path: Path) -> None:
    session = open_session(healthy.model, CPU, profile=tmp_path / "profile")
    for _ in range(6):
        session.run(linear_case().inputs)
    placed = session.placement()
    written = session.end_profiling()
    assert placed is not None
    share = profile.share_of(written, placed, CUDA)
    assert share is not None
    assert 0.0 < share <= 1.0
    assert profile.share_of(written, placed, CPU_NAME) == 0.0
    assert profile.share_of(written, [], CUDA) == 0.0


def test_an_empty_profile_gives_no_share(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps([]))
    assert profile.share_of(path, nodes(Conv_1=CPU_NAME), CUDA) is None
