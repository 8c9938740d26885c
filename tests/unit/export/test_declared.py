"""What is declared is read from the config and from every form that torch takes."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.export import Dim

from onnx_ci.errors import ExitCode, UsageError
from onnx_ci.export.axes import solve
from onnx_ci.export.declared import declare, rename
from onnx_ci.export.measure import measure
from onnx_ci.export.types import Entrypoint, RunCase
from onnx_ci.records.model import DimSpec, ExportSpec, InputSpec, ModelSpec


@dataclasses.dataclass
class Batch:
    images: torch.Tensor
    mask: torch.Tensor


class Net(nn.Module):
    def forward(self, x, y=None, *, z=None): ...


X, Y, Z = torch.zeros(2, 3, 8), torch.zeros(2, 8, dtype=torch.int64), torch.zeros(5)


def entry(options=None, short=True):
    return Entrypoint(Net(), None, options or {}, Path("net.py"), short)


def read(options=None, example=None, short=True, **spec):
    example = example or {"x": X, "y": Y, "z": Z}
    return declare(ModelSpec(name="net", entrypoint="net.py", **spec), entry(options, short), example, Net())


def axes(declared):
    return {item.path: item.axes for item in declared.inputs}


def test_the_config_names_dims_and_the_rest_is_the_examples():
    declared = read(
        short=False,
        inputs={"x": InputSpec(dtype="float16", shape=["batch", 3, "time"], low=0.0, high=1.0)},
        dims={"batch": DimSpec(min=1, max=4), "time": DimSpec()},
    )
    assert axes(declared) == {"x": ["batch", 3, "time"], "y": [2, 8], "z": [5]}
    assert [(item.dtype, item.low, item.high) for item in declared.inputs] == [
        ("float16", 0.0, 1.0),  # what production sends, though the example is float32
        ("int64", None, None),
        ("float32", None, None),
    ]
    assert declared.dims == {"batch": DimSpec(min=1, max=4), "time": DimSpec()}


def test_a_dtype_alone_leaves_the_shape_to_the_example():
    declared = read(short=False, inputs={"y": InputSpec(dtype="int32")})
    assert (declared.inputs[1].dtype, declared.inputs[1].axes) == ("int32", [2, 8])


def test_the_long_form_does_not_read_export_kwargs():
    assert axes(read({"dynamic_shapes": {"x": {0: Dim("batch")}}}, short=False))["x"] == [2, 3, 8]


def test_a_dim_of_one_size_is_that_size():
    declared = read(
        short=False, inputs={"x": InputSpec(shape=["batch", 3, "time"])}, dims={"time": DimSpec(min=8, max=8)}
    )
    assert axes(declared)["x"] == ["batch", 3, 8]
    assert declared.dims == {"batch": DimSpec()}


BATCH, TIME = Dim("batch", min=1, max=32), Dim("time", min=4)


@pytest.mark.parametrize(
    "shapes",
    [
        {"x": {0: BATCH, 2: TIME}, "y": {0: BATCH, 1: TIME}, "z": None},
        {"x": {0: BATCH, 1: None, 2: TIME}, "y": (BATCH, TIME)},
        {"x": [BATCH, 3, TIME], "y": [BATCH, TIME], "z": {}},
        ({0: BATCH, 2: TIME}, {0: BATCH, 1: TIME}),
        [(BATCH, Dim.STATIC, TIME), {0: BATCH, 1: TIME}, None],
    ],
)
def test_dynamic_shapes_by_name_and_by_position(shapes):
    declared = read({"dynamic_shapes": shapes})
    assert axes(declared) == {"x": ["batch", 3, "time"], "y": ["batch", "time"], "z": [5]}
    assert declared.dims == {"batch": DimSpec(min=1, max=32), "time": DimSpec(min=4)}


def test_a_dim_without_bounds_has_no_declared_range():
    assert read({"dynamic_shapes": {"x": {0: Dim("batch")}}}).dims == {"batch": DimSpec()}


def test_the_configs_range_outranks_the_dims_own():
    declared = read({"dynamic_shapes": {"x": {0: BATCH, 2: TIME}}}, dims={"batch": DimSpec(min=2, max=8)})
    assert declared.dims == {"batch": DimSpec(min=2, max=8), "time": DimSpec(min=4)}


def test_a_config_that_gives_no_range_leaves_the_dims_own():
    declared = read({"dynamic_shapes": {"x": {0: BATCH}}}, dims={"batch": DimSpec(multiple_of=4)})
    assert declared.dims == {"batch": DimSpec(min=1, max=32, multiple_of=4)}


def test_hints_get_names_made_of_the_path():
    declared = read({"dynamic_shapes": {"x": {0: Dim.AUTO, 2: Dim.DYNAMIC(min=2, max=9)}, "y": {1: Dim.STATIC}}})
    assert axes(declared) == {"x": ["x_dim0", 3, "x_dim2"], "y": [2, 8], "z": [5]}
    assert declared.inputs[0].auto == {0, 2}
    assert declared.dims == {"x_dim0": DimSpec(), "x_dim2": DimSpec(min=2, max=9)}


def test_dims_that_turn_out_to_be_one_can_share_a_name():
    declared = read({"dynamic_shapes": {"x": {0: Dim.AUTO}, "y": {0: Dim.AUTO}}})
    assert axes(rename(declared, {"y_dim0": "x_dim0"}))["y"] == ["x_dim0", 8]


def test_strings_are_names():
    assert axes(read({"dynamic_shapes": {"x": {0: "batch"}, "y": {0: "batch"}}}))["y"] == ["batch", 8]


def test_derived_dims_are_expressions_of_their_root():
    half = Dim("half", min=1, max=8)
    declared = read({"dynamic_shapes": {"x": {2: 2 * half}, "y": {1: 3 * half - 4}}})
    assert axes(declared)["x"] == [2, 3, "2*half"]
    assert declared.dims == {"half": DimSpec(min=1, max=8)}
    assert solve(declared.inputs[0].axes[2], 8, {}) == ("half", 4)
    assert solve(declared.inputs[1].axes[1], 8, {}) == ("half", 4)
    assert solve(declared.inputs[0].axes[2], 7, {}) is None


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ({"images": X, "mask": Y}, {"images": {0: BATCH}, "mask": {1: TIME}}),
        ([X, Y], [{0: BATCH}, (None, TIME)]),
        ((X, Y), ({0: BATCH}, {1: TIME})),
        (Batch(X, Y), {"images": {0: BATCH}, "mask": {1: TIME}}),
        (Batch(X, Y), [{0: BATCH}, {1: TIME}]),
        (Batch(X, Y), Batch({0: BATCH}, {1: TIME})),
    ],
)
def test_nested_inputs_take_nested_shapes(value, shape):
    declared = read({"dynamic_shapes": {"x": shape}}, {"x": value})
    assert [item.axes for item in declared.inputs] == [["batch", 3, 8], [2, "time"]]


def test_a_collection_of_shapes_is_asked_for_them():
    collection = torch.export.ShapesCollection()
    collection[X] = {0: BATCH}
    assert axes(read({"dynamic_shapes": collection}))["x"] == ["batch", 3, 8]


def test_python_values_and_none_are_no_inputs():
    declared = read({"dynamic_shapes": {"x": {0: BATCH}, "y": None, "z": None}}, {"x": X, "y": None, "z": 3})
    assert axes(declared) == {"x": ["batch", 3, 8]}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"dynamic_axes": {"x": {0: "batch", -1: "time"}, "out": {0: "batch"}}, "output_names": ["out"]}, {}),
        ({"dynamic_axes": {"a": {0: "batch", 2: "time"}}, "input_names": ["a", "b"]}, {}),
    ],
)
def test_dynamic_axes_by_parameter_and_by_the_files_names(options, named):
    declared = read(options, export=ExportSpec(exporter="torchscript"))
    assert axes(declared) == {"x": ["batch", 3, "time"], "y": [2, 8], "z": [5]}


def test_dynamic_axes_without_names_and_with_any_text():
    declared = read({"dynamic_axes": {"x": [0], "y": {1: "seq len"}}, "dynamo": False})
    assert axes(declared) == {"x": ["x_dim0", 3, 8], "y": [2, "seq_len"], "z": [5]}
    assert declared.inputs[0].auto == {0}


@pytest.mark.parametrize(
    ("options", "exporter", "right"),
    [
        ({"dynamic_axes": {"x": {0: "b"}}}, "dynamo", "dynamic_shapes"),
        ({"dynamic_shapes": {"x": {0: BATCH}}}, "torchscript", "dynamic_axes"),
        ({"dynamic_shapes": {"x": {0: BATCH}}, "dynamo": False}, "dynamo", "dynamic_axes"),
    ],
)
def test_the_other_exporters_option_is_refused_with_the_right_one(options, exporter, right):
    with pytest.raises(UsageError) as caught:
        read(options, export=ExportSpec(exporter=exporter))
    assert right in caught.value.hint
    assert caught.value.exit_code is ExitCode.USAGE


def test_the_hint_has_the_users_axes_in_the_form_that_the_exporter_takes():
    axes = {"a": {0: "batch", -1: "time"}, "out": {0: "batch"}}
    with pytest.raises(UsageError) as caught:
        read({"dynamic_axes": axes, "input_names": ["a", "b"], "output_names": ["out"]})
    shapes = "{'x': {0: 'batch', 2: 'time'}, 'y': None, 'z': None}"
    assert f"Write dynamic_shapes={shapes} in its place" in caught.value.hint
    assert 'export.exporter = "torchscript"' in caught.value.hint
    assert set(read({"dynamic_shapes": ast.literal_eval(shapes)}).dims) == {"batch", "time"}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: read({"dynamic_shapes": {"xx": {0: BATCH}}}), "no input xx"),
        (lambda: read({"dynamic_shapes": {"x": {3: BATCH}}}), "axis 3 is none of a tensor of 3 axes"),
        (lambda: read({"dynamic_shapes": {"x": [BATCH]}}), "1 entries for a tensor of 3 axes"),
        (lambda: read({"dynamic_shapes": {"x": {0: 2.5}}}), "expected a torch.export.Dim, got float"),
        (lambda: read({"dynamic_axes": {"xx": [0]}, "dynamo": False}), "no input xx"),
        (lambda: read(inputs={"xx": InputSpec(dtype="int32")}), "no input xx"),
        (lambda: read(inputs={"x": InputSpec(shape=["batch"])}), "1 axes are declared, and the example has 3"),
        (lambda: read(inputs={"y": InputSpec()}, example={"x": X, "y": None}), "the example gives None for it"),
        (lambda: read({"dynamic_shapes": {"x": {0: BATCH}}}, dims={"bach": DimSpec(max=3)}), "no dim bach"),
    ],
)
def test_what_stands_for_nothing_is_refused(call, said):
    with pytest.raises(UsageError, match=said):
        call()


SUM = {"x": InputSpec(shape=["b", 3, "p"]), "y": InputSpec(shape=["b", "p + t"]), "z": InputSpec(shape=["t"])}
SUMS = {"x": X, "y": torch.zeros(2, 13, dtype=torch.int64), "z": Z}


def test_a_sum_of_dims_is_solved_once_the_others_are_known():
    assert solve("p + t", 13, {"p": 8}) == ("t", 5)
    assert solve("p + t", 13, {"p": 8, "t": 4}) == ("p", 9)
    assert solve("p + t", 13, {}) is None
    assert solve("p + t", 7, {"p": 8}) is None


def test_a_sum_of_dims_is_measured_and_held_against_its_parts():
    declared = read(example=SUMS, short=False, inputs=SUM)
    case = measure(RunCase("a", "user", "", SUMS), declared)
    assert (case.dims, case.problems) == ({"b": 2, "p": 8, "t": 5}, [])
    wrong = measure(RunCase("a", "user", "", {**SUMS, "y": torch.zeros(2, 12)}), declared)
    assert wrong.problems == ["axis 1 of y is 12, which is no p + t (p 8, t 5)"]


def test_a_fixed_dim_of_a_sum_is_filled_in():
    declared = read(example=SUMS, short=False, inputs=SUM, dims={"p": DimSpec(min=8, max=8)})
    assert declared.inputs[1].axes == ["b", "8 + t"]
    assert list(declared.dims) == ["b", "t"]


def test_a_dim_that_stands_in_a_sum_only_is_a_usage_error():
    with pytest.raises(UsageError, match="t stands on no axis of its own"):
        read(example=SUMS, short=False, inputs={name: SUM[name] for name in ("x", "y")})
