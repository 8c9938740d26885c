"""Names and order of a file's edges."""

from __future__ import annotations

import pytest
import torch

from onnx_ci.errors import ExitCode, UsageError
from onnx_ci.export import naming
from onnx_ci.export.types import Leaf

LEAVES = [Leaf(path, path.split(".")[0], torch.zeros(1)) for path in ("ids", "batch.images", "batch.sizes", "mask")]


def test_inputs_are_named_as_the_exporter_names_them():
    named = naming.inputs(LEAVES, None, "models.m")
    assert named.names == ["ids", "batch_images", "batch_sizes", "mask"]
    assert named.order == [0, 1, 2, 3]


def test_input_names_order_the_file_by_parameter():
    named = naming.inputs(LEAVES, ["mask", "batch", "ids"], "models.m")
    assert named.names == ["mask", "batch_images", "batch_sizes", "ids"]
    assert named.order == [3, 1, 2, 0]


@pytest.mark.parametrize(
    ("names", "said"), [(["ids", "batch"], "mask is left out"), (["id", "batch", "mask"], "no tensor id")]
)
def test_a_wrong_input_name_is_a_usage_error(names, said):
    with pytest.raises(UsageError, match=said) as raised:
        naming.inputs(LEAVES, names, "models.m")
    assert raised.value.exit_code == ExitCode.USAGE
    assert raised.value.where == "models.m.input_names"


def test_names_by_position_that_belong_to_another_parameter_are_found():
    named = naming.inputs_by_position(LEAVES, ["mask", "pixels", "sizes", "ids"], range(4))
    assert named.names == ["mask", "pixels", "sizes", "ids"]
    assert [(one.rule, one.status, one.subject) for one in named.findings] == [
        ("contract.input-name", "fail", "mask"),
        ("contract.input-name", "fail", "ids"),
    ]


def test_names_by_position_may_be_new_and_few():
    named = naming.inputs_by_position(LEAVES, ["tokens"], range(4))
    assert named.names == ["tokens", "batch_images", "batch_sizes", "mask"]
    assert named.findings == []


def test_dict_outputs_are_matched_by_key():
    named = naming.outputs(["boxes", "scores"], ["scores", "boxes"], ["a", "b"], "models.m")
    assert (named.names, named.order, named.findings) == (["scores", "boxes"], [1, 0], [])


def test_a_key_that_is_not_declared_is_found():
    named = naming.outputs(["boxes", "scores"], ["scores"], ["a", "b"], "models.m")
    assert named.names == ["scores", "boxes"]
    assert [one.rule for one in named.findings] == ["contract.outputs"]


def test_a_declared_output_that_the_module_lacks_is_found():
    named = naming.outputs(["boxes", "scores"], ["score", "boxes"], ["a", "b"], "models.m")
    assert [one.rule for one in named.findings] == ["contract.outputs"]
    assert "boxes, scores" in named.findings[0].message


def test_outputs_without_keys_are_named_by_position():
    named = naming.outputs(["", ""], ["logits", "hidden"], ["linear", "relu"], "models.m")
    assert (named.names, named.findings) == (["logits", "hidden"], [])
    assert naming.outputs(["", ""], None, ["linear", "relu"], "models.m").names == ["linear", "relu"]


def test_swapped_output_names_are_found():
    named = naming.outputs_by_position(["boxes", "scores"], ["scores", "boxes"], ["a", "b"])
    assert [one.rule for one in named.findings] == ["contract.output-name"] * 2


def test_names_are_distinct():
    assert naming.outputs(["", ""], None, ["same", "same"], "m").names == ["same", "same_2"]


def test_an_output_that_is_called_as_an_input_is_gets_another_name_and_is_found_where_it_was_asked_for():
    names, (found,) = naming.apart(["y", "state"], ["y", "state"], ["x", "state"], "output_names")
    assert names == ["y", "state_out"]
    assert (found.rule, found.status, found.subject) == ("contract.output-name", "fail", "state")
    assert "it was exported as state_out" in found.message
    assert "output_names, state_out say" in found.hint


def test_a_key_of_the_module_that_is_called_as_an_input_is_renamed_in_silence():
    assert naming.apart(["y", "state"], [], ["x", "state"], "outputs") == (["y", "state_out"], [])


def test_an_output_keeps_the_name_that_another_would_get():
    names, _ = naming.apart(["state", "state_out"], [], ["state"], "outputs")
    assert names == ["state_out_out", "state_out"]
