from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import onnx
import pytest
from onnx import TensorProto, helper

from onnx_ci.records.contract import Contract, DimContract
from onnx_ci.records.model import DimSpec, ExportSpec, InputSpec, JobSpec
from onnx_ci.records.result import Finding
from onnx_ci.verify import signature

from .artifacts import contract_of, linear_job, linear_model, model_of, value


def broken(findings: Sequence[Finding]) -> dict[str, str]:
    return {one.rule: one.message for one in findings if one.status != "pass"}


def judge(model: onnx.ModelProto, job: JobSpec, contract: Contract | None = None) -> dict[str, str]:
    return broken(signature.judge(model, contract or contract_of(model, job), job.model))


def image_model(shape: Sequence[int | str | None]) -> onnx.ModelProto:
    return model_of(
        [helper.make_node("Relu", ["images"], ["y"])],
        [value("images", TensorProto.FLOAT, shape)],
        [value("y", TensorProto.FLOAT, shape)],
    )


IMAGES = InputSpec(dtype="float32", shape=["batch", 3, "height", "width"])
DIMS = {"batch": DimSpec(min=1, max=8), "height": DimSpec(min=32, max=512), "width": DimSpec(min=32, max=512)}


def image_job(**changes: object) -> JobSpec:
    return linear_job(**{"inputs": {"images": IMAGES}, "dims": DIMS} | changes)


def test_a_healthy_file_passes_and_says_what_it_has() -> None:
    model, job = linear_model(), linear_job(outputs=["y"], input_names=["x"], export=ExportSpec(opset=20, max_ir=10))
    found = signature.judge(model, contract_of(model, job), job.model)
    assert {one.status for one in found} == {"pass"}
    assert {one.rule for one in found} == {
        "contract.names",
        "contract.order",
        "contract.dtype",
        "contract.static-dim",
        "contract.tied-dim",
        "contract.opset",
        "contract.ir",
    }


def test_production_sends_another_dtype_than_the_file_takes() -> None:
    job = linear_job(inputs={"x": InputSpec(dtype="float64")})
    assert judge(linear_model(), job) == {"contract.dtype": "x: production sends float64, the file takes float32"}


def test_a_declared_dim_that_is_a_number_in_the_file() -> None:
    found = judge(image_model(["batch", 3, 224, "width"]), image_job())
    assert found == {
        "contract.static-dim": "images, axis 2: height (32 to 512) is declared dynamic, the file takes 224 only"
    }


def test_a_dim_declared_as_one_size_may_be_a_number() -> None:
    job = image_job(dims=DIMS | {"height": DimSpec(min=224, max=224)})
    assert judge(image_model(["batch", 3, 224, "width"]), job) == {}


def test_two_declared_dims_on_one_symbol() -> None:
    found = judge(image_model(["batch", 3, "height", "height"]), image_job())
    assert list(found) == ["contract.tied-dim"]
    assert "height (images, axis 2) and width (images, axis 3) are one dim height" in found["contract.tied-dim"]


def test_a_dim_without_a_declared_range_must_not_be_frozen_either() -> None:
    model = image_model(["batch", 3, 224, "width"])
    job = image_job(dims={})
    contract = replace(
        contract_of(image_model(["batch", 3, "height", "width"]), job),
        dims={"height": DimContract(min=224, max=224)},
        narrowed={"height": "Eq(h, 224)"},
    )
    assert list(judge(model, job, contract)) == ["contract.static-dim"]


def test_what_was_left_to_the_exporter_only_warns_once_the_export_has_judged_it() -> None:
    model, job = image_model(["batch", 3, 224, 224]), image_job(inputs={}, dims={})
    promised = contract_of(image_model(["batch", 3, "images_2", "images_3"]), job)
    found = signature.judge(model, replace(promised, narrowed={"images_2": "224", "images_3": "224"}), job.model)
    assert [(one.rule, one.status) for one in found if one.status != "pass"] == [("contract.static-dim", "warn")] * 2
    found = signature.judge(model, promised, job.model)
    assert [one.status for one in found if one.status != "pass"] == ["fail", "fail"]


def test_a_file_with_other_symbols_than_declared_is_healthy() -> None:
    assert judge(image_model(["s0", 3, "s1", "s2"]), image_job()) == {}


def test_a_file_without_symbols_is_healthy() -> None:
    model = image_model([None, 3, None, None])
    contract = contract_of(image_model(["batch", 3, "height", "width"]), image_job())
    assert judge(model, image_job(), contract) == {}


def test_another_number_of_channels_and_of_axes() -> None:
    assert list(judge(image_model(["batch", 4, "height", "width"]), image_job())) == ["contract.shape"]
    assert list(judge(image_model(["batch", 3, "height"]), image_job())) == ["contract.shape"]


def two_inputs(*names: str) -> onnx.ModelProto:
    kinds = [value(name, TensorProto.INT64, ["batch", "time"]) for name in names]
    return model_of([helper.make_node("Add", list(names), ["y"])], kinds, [value("y", TensorProto.INT64, None)])


def two_job(**changes: object) -> JobSpec:
    return linear_job(**{"inputs": {}, "dims": {}} | changes)


def two_contract(model: onnx.ModelProto, sources: Sequence[str] = ()) -> Contract:
    fine = value("y", TensorProto.INT64, ["batch", "time"])
    whole = onnx.ModelProto.FromString(model.SerializeToString())
    whole.graph.output[0].CopyFrom(fine)
    contract = contract_of(whole, two_job())
    if sources:
        inputs = [replace(item, source=source) for item, source in zip(contract.inputs, sources, strict=True)]
        contract = replace(contract, inputs=inputs)
    return contract


def test_inputs_in_another_order_than_promised() -> None:
    model = two_inputs("ids", "mask")
    assert list(judge(model, two_job(input_names=["mask", "ids"]), two_contract(model))) == ["contract.order"]
    assert judge(model, two_job(input_names=["ids", "mask"]), two_contract(model)) == {}


def test_input_names_may_name_parameters_of_forward() -> None:
    model = two_inputs("a", "b")
    contract = two_contract(model, ["batch.images", "batch.masks"])
    assert judge(model, two_job(input_names=["batch"]), contract) == {}
    contract = two_contract(model, ["first", "second"])
    assert judge(model, two_job(input_names=["first", "second"]), contract) == {}
    assert list(judge(model, two_job(input_names=["second", "first"]), contract)) == ["contract.order"]


def test_a_frozen_argument_is_no_missing_input() -> None:
    model = two_inputs("ids", "mask")
    contract = replace(two_contract(model), frozen={"scale": 2.0})
    assert judge(model, two_job(input_names=["ids", "mask", "scale"]), contract) == {}


def test_names_that_are_missing_or_too_many() -> None:
    model = two_inputs("ids", "mask")
    found = judge(model, two_job(input_names=["ids", "segment"]), two_contract(model))
    assert "segment missing; mask not promised" in found["contract.names"]
    assert list(judge(model, two_job(outputs=["logits"]), two_contract(model))) == ["contract.names"]


def test_an_output_that_an_input_is_called_like_can_not_have_its_name() -> None:
    model = linear_model()
    found = signature.judge(model, contract_of(model, linear_job()), linear_job(outputs=["x"]).model)
    (hint,) = [one.hint for one in found if one.rule == "contract.names" and one.status == "fail"]
    assert hint is not None
    assert "An input of the file is called x already" in hint
    assert "x_out say" in hint


def test_names_other_than_in_the_contract() -> None:
    found = judge(two_inputs("ids", "mask_1"), two_job(), two_contract(two_inputs("ids", "mask")))
    assert list(found) == ["contract.names"]


def test_another_opset_than_asked_for() -> None:
    assert list(judge(linear_model(), linear_job(export=ExportSpec(opset=13)))) == ["contract.opset"]


def test_an_ir_version_that_production_does_not_read() -> None:
    found = judge(linear_model(), linear_job(export=ExportSpec(max_ir=9)))
    assert list(found) == ["contract.ir"]
    assert judge(linear_model(), linear_job(export=ExportSpec(max_ir=10))) == {}


def test_weights_beside_a_file_that_should_be_single() -> None:
    model = linear_model()
    model.graph.initializer[0].data_location = TensorProto.EXTERNAL
    model.graph.initializer[0].external_data.add(key="location", value="model.onnx.data")
    found = judge(model, linear_job(export=ExportSpec(single_file=True)))
    assert found["contract.files"] == "single_file is set, and the file keeps weights in model.onnx.data"
    assert judge(model, linear_job()) == {}
    assert judge(linear_model(), linear_job(export=ExportSpec(single_file=True))) == {}


def test_findings_point_at_the_declaration() -> None:
    model, job = linear_model(), linear_job(export=ExportSpec(max_ir=9))
    found = [one for one in signature.judge(model, contract_of(model, job), job.model) if one.status == "fail"]
    assert [(one.file, one.line) for one in found] == [("onnx-ci.toml", 3)]


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda: helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None), "sequence(float32)"),
        (lambda: value("x", TensorProto.BFLOAT16, [2]), "bfloat16"),
        (lambda: value("x", TensorProto.STRING, [2]), "string"),
        (
            lambda: helper.make_value_info(
                "x", helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.INT64, [2]))
            ),
            "optional(int64)",
        ),
    ],
)
def test_dtypes_are_named_as_contracts_name_them(make, dtype: str) -> None:
    model = model_of([helper.make_node("Identity", ["x"], ["y"])], [make()], [])
    assert signature.read(model).inputs[0].dtype == dtype
