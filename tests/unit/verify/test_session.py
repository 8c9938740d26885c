from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_ci.artifact import layout
from onnx_ci.artifact.layout import Artifact
from onnx_ci.records.model import TargetSpec
from onnx_ci.verify.session import RuntimeFault, classify, open_session

from .artifacts import CPU, linear_case, linear_model, model_of, value


def saved(folder: Path, model: onnx.ModelProto) -> Path:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def fault_of(path: Path, feeds: dict[str, np.ndarray]) -> RuntimeFault:
    with pytest.raises(RuntimeFault) as caught:
        open_session(path, CPU).run(feeds)
    return caught.value


def test_values_go_in_and_out_by_name(healthy: Artifact) -> None:
    session = open_session(healthy.model, CPU)
    case = linear_case()
    assert (session.inputs, session.outputs, session.active) == (["x"], ["y"], [CPU.provider])
    np.testing.assert_allclose(session.run(case.inputs)["y"], case.outputs["y"], rtol=1e-5)


def test_a_lone_number_keeps_its_rank_when_it_is_left_on_the_device(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> g (int64 at, float[2, 3] x, float[3] more) => (float[6] y) '
        "{ row = Gather(x, at) y = Concat<axis = 0>(row, more) }"
    )
    feeds = {"at": np.array(1), "x": np.ones((2, 3), np.float32).T.copy().T, "more": np.ones(3, np.float32)}
    run = open_session(saved(tmp_path, model), CPU).bound_runner(feeds)
    assert run is not None
    run()


@pytest.mark.parametrize(
    ("feeds", "said"),
    [
        ({"x": np.zeros((2, 2, 3), np.float32)}, "Invalid rank for input: x"),
        ({"x": np.zeros((2, 3))}, "Unexpected input data type. Actual: (tensor(double)) , expected: (tensor(float))"),
        ({}, "Required inputs (['x']) are missing"),
        ({"x": np.zeros((2, 3), np.float32), "z": np.zeros(2)}, "Invalid input name: z"),
        ({"x": np.zeros((2, 4), np.float32)}, "Got invalid dimensions for input: x"),
    ],
)
def test_inputs_that_do_not_fit(healthy: Artifact, feeds: dict[str, np.ndarray], said: str) -> None:
    fault = fault_of(healthy.model, feeds)
    assert fault.kind == "bad-feed"
    assert said in fault.message
    assert "ONNXRuntimeError" not in fault.message


def test_an_operator_that_fails_is_named_without_paths_of_the_build(tmp_path: Path) -> None:
    model = model_of(
        [helper.make_node("Reshape", ["x", "shape"], ["y"], name="node_view")],
        [value("x", TensorProto.FLOAT, ["n", 3])],
        [value("y", TensorProto.FLOAT, [2, "k"])],
        [numpy_helper.from_array(np.array([2, -1]), "shape")],
    )
    fault = fault_of(saved(tmp_path, model), {"x": np.zeros((1, 3), np.float32)})
    assert (fault.kind, fault.operator, fault.node) == ("crash", "Reshape", "node_view")
    assert "/onnxruntime" not in fault.message
    assert "Input shape:{1,3}, requested shape:{2,-1}" in fault.message


def test_an_output_larger_than_any_memory_is_no_fault_of_the_model(tmp_path: Path) -> None:
    model = model_of(
        [helper.make_node("Expand", ["x", "shape"], ["y"], name="bomb")],
        [value("x", TensorProto.FLOAT, [1]), value("shape", TensorProto.INT64, [2])],
        [value("y", TensorProto.FLOAT, ["n", "m"])],
    )
    feeds = {"x": np.zeros(1, np.float32), "shape": np.array([1 << 30, 1 << 20])}
    assert fault_of(saved(tmp_path, model), feeds).kind == "memory"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('Unknown provider option: "use_tf23".', "device"),
        ("Unknown Provider Type: CudaExecutionProvider", "device"),
        ("CUDA failure 100: no CUDA-capable device is detected ; GPU=0", "device"),
        ("Failed to load library libonnxruntime_providers_cuda.so with error: libcublas.so.12", "device"),
        ("CUDA failure 2: out of memory ; GPU=0", "memory"),
        ("std::bad_alloc", "memory"),
        ("something new", "crash"),
    ],
)
def test_faults_are_told_apart_by_what_the_runtime_says(text: str, kind: str) -> None:
    assert classify(RuntimeError(text)).kind == kind


def test_a_provider_that_fails_is_not_replaced_in_silence(healthy: Artifact) -> None:
    with pytest.raises(RuntimeFault) as caught:
        open_session(healthy.model, TargetSpec(name="gpu", provider="CudaExecutionProvider"))
    assert caught.value.kind == "device"


def test_a_library_of_operators_that_is_not_there(healthy: Artifact, tmp_path: Path) -> None:
    with pytest.raises(RuntimeFault) as caught:
        open_session(healthy.model, CPU, custom_ops=[tmp_path / "libmine.so"])
    assert caught.value.kind == "library"
    assert "libmine.so" in caught.value.message


def test_without_optimization_the_graph_stays_as_it_is(tmp_path: Path) -> None:
    model = linear_model()
    model.graph.node.append(helper.make_node("Identity", ["y"], ["z"], name="idle"))
    model.graph.output[0].name = "z"
    path = saved(tmp_path, model)
    nodes = {flag: open_session(path, CPU, optimized=flag).placement() or [] for flag in (True, False)}
    assert [node.op for node in nodes[False]] == ["MatMul", "Add", "Identity"]
    assert len(nodes[True]) < 3


def test_the_runtime_prints_nothing_of_its_own(healthy: Artifact, capfd: pytest.CaptureFixture[str]) -> None:
    fault_of(healthy.model, {"x": np.zeros((2, 4), np.float32)})
    path = healthy.folder / layout.MODEL
    path.write_bytes(b"garbage")
    with pytest.raises(RuntimeFault):
        open_session(path, CPU)
    assert capfd.readouterr() == ("", "")


def test_options_reach_the_provider_as_text(healthy: Artifact) -> None:
    target = replace(CPU, options={"use_arena": False}, threads=2)
    assert open_session(healthy.model, target).active == [CPU.provider]


def test_strings_and_sequences_go_through(tmp_path: Path) -> None:
    model = model_of(
        [
            helper.make_node("SplitToSequence", ["x"], ["parts"], axis=0),
            helper.make_node("Identity", ["words"], ["same"]),
        ],
        [value("x", TensorProto.FLOAT, ["n"]), value("words", TensorProto.STRING, ["k"])],
        [
            helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None),
            value("same", TensorProto.STRING, ["k"]),
        ],
    )
    words = np.array(["a", "ä"], dtype=object)
    found = open_session(saved(tmp_path, model), CPU).run({"x": np.arange(2, dtype=np.float32), "words": words})
    assert [part.tolist() for part in found["parts"]] == [[0.0], [1.0]]
    assert found["same"].tolist() == ["a", "ä"]
