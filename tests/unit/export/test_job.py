"""The export job: an artifact that is whole, or none; findings that name cause and line."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_ci.artifact import layout, tensors
from onnx_ci.artifact.layout import Artifact, changed_files
from onnx_ci.errors import OnnxCiError, UsageError
from onnx_ci.export.job import export
from onnx_ci.records.messages import ExportRequest
from onnx_ci.records.model import DimSpec, ExportSpec, InputSpec, JobSpec, LatencySpec, ModelSpec

pytestmark = pytest.mark.torch

MODELS = """
import torch
from torch import nn
from torch.nn import functional as F


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 5)

    def forward(self, images, scale=2.0):
        hidden = self.conv(images).relu().mean((2, 3))
        return {"logits": self.head(hidden) * scale, "hidden": hidden}


def classifier():
    torch.manual_seed(1)
    return Classifier().eval()


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0]


def tagger():
    torch.manual_seed(2)
    return Tagger().eval()


class Bins(nn.Module):
    def forward(self, x):
        return F.adaptive_avg_pool2d(x, (4, round(4 * x.shape[3] / x.shape[2])))


def bins():
    return Bins().eval()


class Spectrum(nn.Module):
    def forward(self, x):
        return torch.linalg.eigvals(x).real


def spectrum():
    return Spectrum().eval()


class Returned(nn.Module):
    def forward(self, ids, mask=None):
        twice = ids * 2
        return {"ids": ids, "twice": twice, "again": twice}


def returned():
    return Returned().eval()


def returned_cases():
    return [("first", {"ids": torch.ones(2, 3), "mask": None}), ("wide", {"ids": torch.ones(2, 4), "mask": None})]


class Short(nn.Module):
    def forward(self, x, gain=2):
        return x[:, :16] * gain if x.shape[1] <= 16 else None.nothing


def short():
    return Short().eval()


def short_cases():
    return [("two", {"x": torch.ones(2, 8), "gain": 2}), ("three", {"x": torch.ones(2, 8), "gain": 3})]


class Halved(nn.Module):
    def forward(self, x):
        return F.interpolate(x, size=(int(x.shape[2] * 0.5), 4))


def halved():
    return Halved().eval()


class Even(nn.Module):
    def forward(self, x):
        return x.view(2, -1)


def even():
    return Even().eval()


class Upside(nn.Module):
    def forward(self, x):
        return x.flip(0).view(2, -1)


def upside():
    return Upside().eval()


class Wrong(nn.Module):
    def forward(self, x):
        return x @ torch.ones(7, 7)


def wrong():
    return Wrong().eval()


class Strides(nn.Module):
    def __init__(self):
        super().__init__()
        self.frames = nn.Conv1d(1, 4, 8, 8)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        x = self.frames(x[:, None]).transpose(1, 2)
        return self.attention(x, x, x)[0]


def strides():
    torch.manual_seed(3)
    return Strides().eval()


class Sides(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[1] > 20 else x


def sides():
    return Sides().eval()
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "models.py").write_text(MODELS)
    return folder


def run(root: Path, function: str, artifact: str = "", **spec):
    model = ModelSpec(name=function, entrypoint=f"models.py:{function}", **spec)
    job = JobSpec(model=model, targets=[], latency=LatencySpec(budget_seconds=0.1))
    target = root / "out" / (artifact or function)
    return export(ExportRequest(job=job, root=str(root), artifact=str(target)), lambda _: None), Artifact(target)


def found(result, rule):
    return [one for one in result.findings if one.rule == rule]


def line_of(text):
    return next(at for at, line in enumerate(MODELS.splitlines(), 1) if text in line)


def floats(*shape):
    return InputSpec(dtype="float32", shape=list(shape))


@pytest.fixture(scope="module")
def classifier(root):
    return run(
        root,
        "classifier",
        inputs={"images": floats("batch", 3, "height", "width")},
        dims={
            "batch": DimSpec(min=1, max=4),
            "height": DimSpec(min=8, max=20),
            "width": DimSpec(min=8, max=20, example=12),
        },
        outputs=["hidden", "logits"],
        kwargs={},
    )


def test_a_healthy_model_passes_with_a_whole_artifact(classifier):
    result, artifact = classifier
    assert [one for one in result.findings if one.status != "pass"] == []
    assert result.status == "pass"
    assert result.target == "export"
    assert result.artifact == artifact.digest()
    assert changed_files(artifact) == []
    assert set(result.stages) >= {"entrypoint", "first call", "capture", "translate", "cases", "run cases", "save"}
    assert {timing.runner for timing in result.latency} == {"eager", "onnxruntime"}


def test_the_contract_says_what_the_file_promises(classifier):
    contract = classifier[1].contract()
    assert [(one.name, one.dtype, one.shape, one.source) for one in contract.inputs] == [
        ("images", "float32", ["batch", 3, "height", "width"], "images")
    ]
    assert [(one.name, one.shape) for one in contract.outputs] == [("hidden", ["batch", 8]), ("logits", ["batch", 5])]
    assert (contract.dims["height"].min, contract.dims["height"].max) == (8, 20)
    assert (contract.strategy, contract.exporter, contract.narrowed) == ("own", "dynamo", {})


def test_the_file_has_the_declared_names_order_and_dims(classifier):
    model = onnx.load(str(classifier[1].model), load_external_data=False)
    assert [value.name for value in model.graph.output] == ["hidden", "logits"]
    dims = [dim.dim_param or dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    assert dims == ["batch", 3, "height", "width"]


def test_cases_hold_inputs_outputs_and_oracle(classifier):
    artifact = classifier[1]
    cases = artifact.cases().cases
    assert cases[0].origin == "example"
    assert {"all-max", "height-min", "width-max"} <= {case.name for case in cases}
    for case in cases:
        folder = artifact.case_folder(case.index)
        outputs, oracle = tensors.read_values(folder, "output"), tensors.read_values(folder, "oracle")
        assert list(outputs) == ["hidden", "logits"]
        assert oracle["logits"].dtype == np.float64
        assert outputs["logits"].shape == oracle["logits"].shape
        assert all(output.e_torch is not None and output.e_torch < 1e-5 for output in case.outputs)


def test_the_file_holds_no_local_path_and_the_map_does(classifier, root):
    artifact = classifier[1]
    for path in artifact.folder.glob("model.onnx*"):
        assert str(root).encode() not in path.read_bytes()
        assert b"models.py" not in path.read_bytes()
    origins = artifact.source_map().values
    conv = next(origin for origin in origins.values() if origin.op == "Conv")
    assert (conv.file, conv.line, conv.module) == ("models.py", line_of("self.conv(images)"), "conv")
    assert "logits" in origins


def test_equal_sources_give_equal_bytes(root):
    dims = {"batch": DimSpec(min=1, max=4)}
    seen = set()
    for folder in ("once", "twice"):
        _, artifact = run(root, "even", folder, inputs={"x": floats("batch", 6)}, dims=dims)
        seen.add((hashlib.sha256(artifact.model.read_bytes()).hexdigest(), artifact.digest()))
    assert len(seen) == 1


def test_the_time_axis_of_an_lstm_is_put_right(root):
    dims = {"batch": DimSpec(min=1, max=4), "time": DimSpec(min=1, max=9)}
    result, artifact = run(root, "tagger", inputs={"x": floats("batch", "time", 3)}, dims=dims)
    assert [(one.rule, one.status) for one in result.findings if one.status != "pass"] == [
        ("contract.output-dims", "warn")
    ]
    (output,) = onnx.load(str(artifact.model), load_external_data=False).graph.output
    dims_now = [dim.dim_param or dim.dim_value for dim in output.type.tensor_type.shape.dim]
    assert dims_now == ["batch", "time", 4]
    assert artifact.contract().outputs[0].shape == ["batch", "time", 4]


def test_outputs_that_are_inputs_or_twins_have_values_of_their_own(root):
    result, artifact = run(root, "returned", cases=["models.py:returned_cases"], inputs={"ids": floats("b", 3)})
    (case,) = found(result, "contract.case")
    assert "axis 1 of ids is 4, declared 3" in case.message
    names = [value.name for value in onnx.load(str(artifact.model)).graph.output]
    assert names == ["ids_out", "twice", "again"]
    assert artifact.contract().frozen == {"mask": None}


def test_a_case_with_another_python_value_is_left_out_and_found(root):
    result, artifact = run(root, "short", cases=["models.py:short_cases"])
    (frozen,) = found(result, "contract.frozen-argument")
    assert (frozen.status, frozen.subject) == ("fail", "three")
    assert (frozen.file, frozen.line) == ("models.py", line_of("def forward(self, x, gain=2)"))
    assert [case.name for case in artifact.cases().cases] == ["two"]


def test_a_baked_size_is_judged_by_what_the_file_does_there(root):
    dims = {"h": DimSpec(min=4, max=64)}
    result, _ = run(root, "halved", inputs={"x": floats(1, 1, "h", 8)}, dims=dims)
    (guard,) = found(result, "contract.guard")
    assert guard.status == "fail"
    assert "PyTorch with" in guard.message
    assert (guard.file, guard.line) == ("models.py", line_of("int(x.shape[2] * 0.5)"))


def test_a_size_that_froze_because_of_an_example_of_ours_is_exported_at_another(root):
    dims = {"samples": DimSpec(min=8, max=40)}  # 12 samples leave one frame
    result, artifact = run(root, "strides", inputs={"x": floats(3, "samples")}, dims=dims)
    assert [one for one in result.findings if one.status == "fail"] == []
    assert artifact.contract().dims["samples"].captured_max == 40
    assert artifact.cases().cases[0].dims == {"samples": 18}


def test_a_size_that_froze_at_the_users_own_example_is_found(root):
    dims = {"samples": DimSpec(min=8, max=40, example=12)}
    result, _ = run(root, "strides", "strides_chosen", inputs={"x": floats(3, "samples")}, dims=dims)
    assert [one.status for one in found(result, "contract.static-dim")] == ["fail"]


def test_a_branch_on_a_size_is_found_at_any_example(root):
    result, _ = run(root, "sides", inputs={"x": floats("b", "n")}, dims={"n": DimSpec(min=2, max=40)})
    (range_,) = found(result, "contract.range")
    assert (range_.status, range_.line) == ("fail", line_of("x.shape[1] > 20"))


def test_what_the_module_refuses_too_becomes_part_of_the_contract(root):
    result, artifact = run(root, "even", "even_open", inputs={"x": floats("b", 3)}, dims={"b": DimSpec(example=4)})
    assert result.status == "pass"
    assert artifact.contract().dims["b"].multiple_of == 2


def test_what_the_module_refuses_inside_the_declared_range_is_found(root):
    dims = {"b": DimSpec(min=2, max=9, example=4)}
    result, _ = run(root, "even", "even_declared", inputs={"x": floats("b", 3)}, dims=dims)
    (refused,) = found(result, "contract.declared-size")
    assert refused.status == "fail"
    assert "the module itself refuses" in refused.message


@pytest.mark.parametrize(
    ("function", "inputs", "dims", "step", "said", "line"),
    [
        ("bins", floats(1, 2, 8, "w"), {"w": DimSpec(example=11)}, "decomposition", "TraceError", "round(4 *"),
        ("spectrum", floats(3, 3), {}, "translation", "aten.linalg_eig", "torch.linalg.eigvals"),
    ],
)
def test_an_export_that_stops_names_step_cause_and_line(root, function, inputs, dims, step, said, line):
    result, artifact = run(root, function, inputs={"x": inputs}, dims=dims)
    (stopped,) = found(result, "export.stopped")
    assert (stopped.status, stopped.data["step"]) == ("fail", step)
    assert said in stopped.message
    assert (stopped.file, stopped.line) == ("models.py", line_of(line))
    assert result.artifact is None
    assert not artifact.folder.exists()


def test_a_module_that_raises_is_told_apart_and_an_older_artifact_goes(root):
    old = root / "out" / "wrong"
    old.mkdir(parents=True)
    (old / layout.MODEL).write_bytes(b"of yesterday")
    result, artifact = run(root, "wrong", inputs={"x": floats(2, 3)})
    (stopped,) = found(result, "export.stopped")
    assert stopped.data["step"] == "eager"
    assert "the PyTorch module itself raises" in stopped.message
    assert not artifact.folder.exists()


def test_the_older_exporter_is_used_when_asked(root):
    result, artifact = run(
        root,
        "classifier",
        "classifier_torchscript",
        inputs={"images": floats("batch", 3, 12, 12)},
        export=ExportSpec(exporter="torchscript", opset=17, single_file=True),
    )
    assert result.status == "pass"
    contract = artifact.contract()
    assert (contract.exporter, contract.strategy, contract.opset) == ("torchscript", "torchscript", 17)
    assert contract.inputs[0].shape == ["batch", 3, 12, 12]
    assert not (artifact.folder / layout.DATA).exists()
    assert {one.name for one in contract.outputs} == {"logits", "hidden"}


def test_a_rewrite_is_judged_before_the_export_which_goes_on(root):
    same, _ = run(root, "even", "even_same", inputs={"x": floats(2, 6)}, reference="models.py:even")
    assert same.status == "pass"
    assert list(same.stages).index("rewrite") < list(same.stages).index("capture")
    assert {one.status for one in same.findings if one.stage == "rewrite"} == {"pass", "skip"}
    other, artifact = run(root, "upside", inputs={"x": floats(2, 6)}, reference="models.py:even")
    assert other.status == "fail"
    assert [one.rule for one in other.findings if one.status == "fail"] == [
        "rewrite.forward",
        "rewrite.input-gradients",
    ]
    assert artifact.digest() == other.artifact


def test_a_module_that_does_not_run_is_compared_with_nothing(root):
    result, _ = run(root, "wrong", "wrong_adapted", inputs={"x": floats(2, 3)}, reference="models.py:even")
    assert [(one.rule, one.status) for one in result.findings if one.stage == "rewrite"] == [
        ("rewrite.forward", "skip")
    ]


def test_a_wrong_name_in_the_config_is_a_usage_error(root):
    with pytest.raises(UsageError, match="no tensor pixels"):
        run(root, "classifier", "named", inputs={"images": floats(1, 3, 12, 12)}, input_names=["pixels"])


def test_a_place_that_cannot_be_written_is_told(root):
    (root / "file").write_text("")
    with pytest.raises(OnnxCiError, match="can't be written"):
        run(root, "even", "../file/inside", inputs={"x": floats(2, 6)})
