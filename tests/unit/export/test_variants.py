"""Which cases a variant takes: in the long form by the config's shapes, in the short form by export_kwargs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from onnx_ci.artifact.layout import Artifact
from onnx_ci.errors import UsageError
from onnx_ci.export import variants
from onnx_ci.export.given import Given
from onnx_ci.export.job import export
from onnx_ci.export.types import Entrypoint
from onnx_ci.records.messages import ExportRequest
from onnx_ci.records.model import InputSpec, JobSpec, LatencySpec, ModelSpec

pytestmark = pytest.mark.torch

SHORT = """
import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def forward(self, x):
        return x.mean(2) + x.shape[1]


def make_model():
    return Model().eval()


def make_inputs():
    return [(f"height {height}", {"x": torch.ones(2, height, 5)}) for height in (7, 9)]


def export_kwargs():
    return {"dynamic_shapes": {"x": {0: Dim("batch", min=1, max=8), 1: Dim("height", min=1, max=64)}}}
"""
FIXED = {"low": {"height": 7}, "high": {"height": 9}}


class Anything(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def spec(variant: str = "low", **more: object) -> ModelSpec:
    given = {
        "inputs": {"x": InputSpec(shape=["batch", FIXED[variant]["height"]], named=["batch", "height"])},
        "entrypoint": "model.py:build",
        "variants": FIXED,
    }
    return ModelSpec(name="m", variant=variant, **(given | more))  # type: ignore[arg-type]


def given(**shapes: tuple[int, ...]) -> list[Given]:
    return [Given(name, {"x": torch.ones(shape)}, "cases()") for name, shape in shapes.items()]


LOADED = Entrypoint(Anything(), None, {}, Path("model.py"), short=False)


def test_a_variant_keeps_the_cases_of_its_sizes_and_says_which_it_leaves_out():
    kept, found = variants.fitting(spec(), LOADED, given(a=(2, 7), b=(2, 9), c=(3, 7)))
    assert [case.name for case in kept] == ["a", "c"]
    assert [(one.rule, one.status, one.data["cases"]) for one in found] == [("contract.case", "skip", ["b"])]


def test_a_model_without_variants_keeps_all_its_cases():
    cases = given(a=(2, 7), b=(2, 9))
    assert variants.fitting(spec(variants={}), LOADED, cases) == (cases, [])


def test_a_case_of_another_form_is_kept_for_it_is_a_fault_to_be_told():
    kept, found = variants.fitting(spec(), LOADED, given(flat=(7,), right=(1, 7)))
    assert ([case.name for case in kept], found) == (["flat", "right"], [])


def test_a_case_that_no_variant_takes_is_warned_of_once():
    cases = given(a=(2, 7), b=(2, 9), stray=(2, 8))
    warned = [one for one in variants.fitting(spec(), LOADED, cases)[1] if one.status == "warn"]
    assert [(one.rule, one.subject) for one in warned] == [("contract.case", "stray")]
    assert [one.status for one in variants.fitting(spec("high"), LOADED, cases)[1]] == ["skip"]


def test_without_a_fitting_case_the_shapes_must_tell():
    assert variants.fitting(spec(), LOADED, given(b=(2, 9)))[0] == []
    bare = spec(inputs={"x": InputSpec(dtype="float32")}, entrypoint="model.py")
    short = Entrypoint(Anything(), None, {"dynamic_shapes": {"x": {1: "height"}}}, Path("model.py"), short=True)
    with pytest.raises(UsageError, match=r"none of the 1 cases has the sizes of this variant \(height 7\)"):
        variants.fitting(bare, short, given(b=(2, 9)))


@pytest.mark.parametrize(("variant", "size"), [("low", 7), ("high", 9)])
def test_the_short_form_is_exported_with_the_dims_that_a_variant_fixes(tmp_path: Path, variant: str, size: int):
    (tmp_path / "model.py").write_text(SHORT)
    model = spec(variant, inputs={}, entrypoint="model.py")
    request = ExportRequest(
        job=JobSpec(model=model, targets=[], latency=LatencySpec(budget_seconds=0.01)),
        root=str(tmp_path),
        artifact=str(tmp_path / "artifact"),
    )
    result = export(request, lambda _: None)
    assert [one for one in result.findings if one.status in ("warn", "fail", "error")] == []
    contract = Artifact(tmp_path / "artifact").contract()
    assert contract.inputs[0].shape == ["batch", size, 5]
    assert list(contract.dims) == ["batch"]
    assert contract.export_options["dynamic_shapes"] == {"x": {"0": "batch"}}
    assert result.contract == contract


def test_a_dim_that_nobody_knows_is_a_usage_error(tmp_path: Path):
    (tmp_path / "model.py").write_text(SHORT.replace('Dim("height", min=1, max=64)', 'Dim("h")'))
    request = ExportRequest(
        job=JobSpec(model=spec(inputs={}, entrypoint="model.py"), targets=[]),
        root=str(tmp_path),
        artifact=str(tmp_path / "artifact"),
    )
    with pytest.raises(UsageError, match="there is no dim height"):
        export(request, lambda _: None)
