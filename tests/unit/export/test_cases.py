"""Cases come from the user's functions and files, or are made; what contradicts the declaration is said."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import nn

from onnx_ci.artifact.tensors import write_values
from onnx_ci.errors import OnnxCiError, UsageError
from onnx_ci.export import arguments, casefiles, cases, given
from onnx_ci.export.types import Declared, DeclaredInput, Entrypoint, RunCase
from onnx_ci.records.model import DimSpec, InputSpec, ModelSpec


@dataclasses.dataclass
class Batch:
    images: torch.Tensor
    scale: float


class Net(nn.Module):
    def forward(self, x, y=None, n=1): ...


def entry(make_inputs=None, **options):
    return Entrypoint(Net(), make_inputs, options, Path("net.py"), make_inputs is not None)


def read(root, *sources, entrypoint=None, **spec):
    spec = ModelSpec(name="net", entrypoint="net.py", cases=list(sources), **spec)
    return given.read(spec, entrypoint or entry(), root)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def function(project, body):
    (project / "samples_of_net.py").write_text(f"import numpy as np\nimport torch\n\ndef cases():\n    {body}\n")
    return read(project, "samples_of_net.py:cases")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return torch.ones(1)", {"example": {"x": [1.0]}}),
        ("return np.ones(1)", {"example": {"x": [1.0]}}),
        ("return (torch.ones(1),)", {"example": {"x": [1.0]}}),
        ("return (torch.ones(1), torch.zeros(1), 3)", {"example": {"x": [1.0], "y": [0.0], "n": 3}}),
        ("return (torch.ones(1), {'n': 3})", {"example": {"x": [1.0], "n": 3}}),
        ("return (torch.ones(1), {'key': torch.zeros(1)})", {"example": {"x": [1.0], "y": {"key": [0.0]}}}),
        ("return {'x': torch.ones(1)}", {"example": {"x": [1.0]}}),
        ("return ('wide', {'x': torch.ones(1)})", {"wide": {"x": [1.0]}}),
        ("return [('wide', (torch.ones(1), None))]", {"wide": {"x": [1.0], "y": None}}),
        (
            "return [torch.ones(1), {'x': torch.zeros(1)}, (torch.ones(1), None)]",
            {"example": {"x": [1.0]}, "case-2": {"x": [0.0]}, "case-3": {"x": [1.0], "y": None}},
        ),
        ("yield torch.ones(1)", {"example": {"x": [1.0]}}),
    ],
)
def test_cases_may_come_as_torchs_export_takes_them(project, body, expected):
    def plain(_, leaf):
        return leaf.tolist() if isinstance(leaf, torch.Tensor) else leaf

    found = function(project, body)
    assert {one.name: arguments.rebuild(one.inputs, plain) for one in found} == expected


def test_a_tuple_fills_the_places_of_a_forward_with_any_number():
    class Many(nn.Module):
        def forward(self, x, *rest): ...

    entrypoint = Entrypoint(Many(), lambda: (torch.ones(1), 2, 3), {}, Path("net.py"), short=True)
    (found,) = given.read(ModelSpec(name="net", entrypoint="net.py"), entrypoint, Path())
    assert found.inputs["rest"] == (2, 3)


def test_a_functions_cases_keep_their_order_and_get_unique_names(project):
    found = function(project, "return [('a', {'x': torch.ones(1)}), ('b', {'x': torch.ones(2)}), ('a', {'x': None})]")
    assert [one.name for one in found] == ["a", "b", "a-2"]
    assert found[1].inputs["x"].shape == (2,)


def test_a_generator_and_numpy_arrays_will_do(project):
    (one,) = function(project, "yield 'a', {'x': [np.float32(2), np.zeros((2, 3), 'i4')], 'n': 3}")
    assert [(value.dtype, tuple(value.shape)) for value in one.inputs["x"]] == [
        (torch.float32, ()),
        (torch.int32, (2, 3)),
    ]
    assert one.inputs["n"] == 3


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return []", r"cases\(\) returned no case"),
        ("return ()", r"cases\(\) returned no case"),
        ("return None", r"cases\(\) gives None, not the inputs of a call"),
        ("return [3]", r"cases\(\)\[0\] gives an int, not the inputs of a call"),
        ("return (torch.ones(1), None, 1, 2)", r"cases\(\) gives 4 values, and forward takes 3 \(x, y, n\)"),
        ("return [('a', 3)]", r"cases\(\)\[0\] gives an int"),
        ("return [('a', {0: torch.ones(1)})]", "not all named by text"),
        ("return [('a', {'x': np.array(['text'])})]", "torch has no dtype <U4"),
        ("raise OSError('gone')", "raised OSError: gone"),
    ],
)
def test_what_is_no_list_of_cases_is_named(project, body, said):
    with pytest.raises(OnnxCiError, match=said):
        function(project, body)


def test_the_short_forms_arguments_stand_in_every_case(project):
    short = entry(lambda: [("a", {"x": torch.ones(1)})], kwargs={"n": 5}, args=(torch.zeros(1), torch.zeros(2)))
    (one,) = read(project, entrypoint=short)
    assert (one.inputs["x"].item(), one.inputs["y"].shape, one.inputs["n"]) == (1.0, (2,), 5)


def test_npz_files_in_the_order_of_their_numbers(project):
    for at in (10, 9):
        np.savez(project / f"s{at}.npz", x=np.full((2,), at, "f4"), y=np.array(3))
    first, second = read(project, "*.npz")
    assert (first.name, second.name) == ("s9", "s10")
    assert first.inputs["x"].tolist() == [9, 9]
    assert first.inputs["y"].dim() == 0


def test_npz_keys_may_be_paths_and_python_values_are_the_first_cases(project):
    np.savez(project / "s.npz", **{"x.images": np.ones(4, "f4"), "y[1]": np.ones(3), "y[0]": np.ones(2), "n": 7})
    first = given.Given("a", {"x": Batch(torch.ones(1), 0.5), "y": (torch.ones(1), torch.ones(1)), "n": 2}, "")
    (_, second) = read(project, "s.npz", entrypoint=entry(lambda: [(first.name, first.inputs)]))
    assert (second.inputs["x"].images.shape, second.inputs["x"].scale) == ((4,), 0.5)
    assert [tuple(value.shape) for value in second.inputs["y"]] == [(2,), (3,)]
    assert second.inputs["n"] == 7


def test_npz_alone_shows_dicts_and_lists(project):
    np.savez(project / "s.npz", **{"x.images": np.ones(4), "y[0]": np.ones(2), "y[1].a": np.ones(3)})
    (one,) = read(project, "s.npz")
    assert list(one.inputs["x"]) == ["images"]
    assert one.inputs["y"][1]["a"].shape == (3,)


def test_pickled_objects_are_never_read(project):
    np.savez(project / "s.npz", x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(UsageError, match="x holds Python objects") as caught:
        read(project, "s.npz")
    assert "s.npz" in caught.value.where


def test_an_npz_that_is_none_is_an_error(project):
    (project / "s.npz").write_bytes(b"no archive")
    with pytest.raises(OnnxCiError, match="can't be read"):
        read(project, "s.npz")


def test_an_input_that_is_missing_or_unknown_is_named(project):
    np.savez(project / "s.npz", xx=np.ones(1))
    short = entry(lambda: [("a", {"x": torch.ones(1)})])
    with pytest.raises(UsageError, match="no input xx"):
        read(project, "s.npz", entrypoint=short)
    np.savez(project / "s.npz", y=np.ones(1))
    with pytest.raises(UsageError, match="x is missing"):
        read(project, "s.npz", entrypoint=short)


def write_set(folder, names, *values):
    write_values(folder, "input", names, values)


def test_data_sets_by_name_and_by_position(project):
    x, y = np.ones((2, 2), "f4"), np.arange(2)
    write_set(project / "test_data_set_0", ["y", "x"], y, x)
    write_set(project / "test_data_set_1", ["input.1", "input.2"], x, y)
    write_set(project / "test_data_set_10", ["onnx::A", "onnx::B"], y, x)
    for one in read(project, "test_data_set_[01]"):
        assert one.inputs["x"].dtype == torch.float32
        assert one.inputs["y"].tolist() == [0, 1]
    (one,) = read(project, "test_data_set_10", input_names=["y", "x"])
    assert one.inputs["y"].tolist() == [0, 1]


def test_data_sets_hold_bfloat16(project):
    write_set(project / "set", ["x"], np.array([1.5, -2.0], dtype=ml_dtypes.bfloat16))
    (one,) = read(project, "set")
    assert torch.equal(one.inputs["x"], torch.tensor([1.5, -2.0], dtype=torch.bfloat16))


def test_a_data_set_of_another_number_of_inputs_is_refused(project):
    write_set(project / "set", ["a", "b"], np.ones(1), np.ones(1))
    with pytest.raises(UsageError, match="not those of forward"):
        read(project, "set", entrypoint=entry(lambda: [("a", {"x": torch.ones(1)})]))


@pytest.mark.parametrize(("pattern", "said"), [("none/*.npz", "matches nothing"), ("*.txt", "neither an .npz file")])
def test_patterns_that_find_no_case_are_refused(project, pattern, said):
    (project / "notes.txt").write_text("")
    with pytest.raises(UsageError, match=said):
        read(project, pattern)


def test_the_first_case_is_the_example(project):
    spec = ModelSpec(name="net", entrypoint="net.py")
    found = [given.Given("a", {"x": torch.ones(2)}, ""), given.Given("b", {"x": torch.ones(3)}, "")]
    example = cases.example(spec, entry(), found)
    assert (example.name, example.origin) == ("a", "user")


def test_without_cases_the_example_is_made_of_the_declaration():
    spec = ModelSpec(
        name="net",
        entrypoint="net.py:build",
        inputs={
            "x": InputSpec(dtype="float32", shape=["batch", 3, "height"], low=0.0, high=1.0),
            "y": InputSpec(dtype="int64", shape=["batch", "time"], values=[2, 7]),
            "n": InputSpec(dtype="bool", shape=["batch", "time"]),
        },
        dims={"time": DimSpec(example=5)},
    )
    example = cases.example(spec, entry(), [])
    again = cases.example(spec, entry(), [])
    assert example.origin == "example"
    x, y, n = (example.inputs[name] for name in "xyn")
    assert tuple(x.shape) == (example.dims["batch"], 3, example.dims["height"])
    assert (example.dims["time"], n.shape, n.dtype) == (5, y.shape, torch.bool)
    assert 0 <= x.min() < x.max() <= 1
    assert set(y.flatten().tolist()) <= {2, 7}
    assert n.any(dim=-1).all()
    assert all(torch.equal(example.inputs[name], again.inputs[name]) for name in "xyn")


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({}, "there is no case, and no shape"),
        ({"x": InputSpec(dtype="float32")}, "inputs.x has no shape"),
        ({"x": InputSpec(dtype="string", shape=[1])}, "torch has no dtype string"),
    ],
)
def test_without_cases_and_shapes_there_is_no_example(inputs, said):
    with pytest.raises(UsageError, match=said):
        cases.example(ModelSpec(name="net", entrypoint="net.py:build", inputs=inputs), entry(), [])


DECLARED = Declared(
    inputs=[
        DeclaredInput("x", ["batch", 3, "time"], "float32"),
        DeclaredInput("y", ["batch", "2*half"], "int64"),
    ],
    dims={"batch": DimSpec(min=1, max=4), "time": DimSpec(multiple_of=4), "half": DimSpec()},
)


def inputs(batch=2, channels=3, time=8, other=None, double=6, **more):
    return {
        "x": torch.zeros(batch, channels, time),
        "y": torch.zeros(other or batch, double, dtype=torch.int64),
        **more,
    }


def judged(*many):
    return cases.user_cases([given.Given(f"c{at}", one, "") for at, one in enumerate(many)], DECLARED)


def test_dims_are_read_from_the_shapes():
    (case,) = judged(inputs())
    assert case.dims == {"batch": 2, "time": 8, "half": 3}
    assert case.problems == []


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (inputs(channels=4), "axis 1 of x is 4, declared 3"),
        (inputs(batch=9), "batch is 9, outside the declared 1 to 4"),
        (inputs(other=3), "batch is 2 and, in axis 0 of y, 3"),
        (inputs(time=6), "time is 6, no multiple of 4"),
        (inputs(double=5), "axis 1 of y is 5, which is no 2*half"),
        (inputs() | {"x": torch.zeros(2, 3)}, "x has shape [2, 3], declared"),
        (inputs() | {"y": None}, "y is None here and a tensor in the example"),
        (inputs(n=torch.ones(1)), "n is a tensor here and none in the example"),
        (inputs(n=4), "n is 4 here and 2 in the first case"),
    ],
)
def test_a_case_that_contradicts_the_declaration_says_how_and_stays(second, said):
    first, case = judged(inputs(n=2), second)
    assert first.problems == []
    assert any(said in problem for problem in case.problems)
    assert said in case.why
    assert (case.name, case.origin) == ("c1", "user")


def test_boundary_cases_keep_nesting_dtypes_and_python_values():
    declared = Declared(
        inputs=[
            DeclaredInput("x.images", ["batch", 3, "time"], "float32"),
            DeclaredInput("y[0]", ["batch"], "int64"),
            DeclaredInput("y[1]", [4], "float32"),
        ],
        dims={"batch": DimSpec(min=1, max=4)},
    )
    fixed = torch.randn(4)
    example = RunCase(
        "a",
        "user",
        "",
        {"x": Batch(torch.rand(2, 3, 8, dtype=torch.float16), 0.5), "y": (torch.tensor([3, 8]), fixed), "n": None},
    )
    notes = []
    made = cases.boundary_cases(declared, {"batch": (1, 4), "time": (6, 12)}, example, [], notes=notes)
    assert notes == []
    assert [case.origin for case in made] == ["boundary"] * len(made)
    assert len({case.name for case in made}) == len(made)
    for case in made:
        assert case.inputs["x"].images.shape == (case.dims["batch"], 3, case.dims["time"])
        assert case.inputs["x"].images.dtype == torch.float16  # a declared dtype never casts
        assert case.inputs["y"][0].shape == (case.dims["batch"],)
        assert torch.equal(case.inputs["y"][1], fixed)
        assert (case.inputs["x"].scale, case.inputs["n"]) == (0.5, None)
    sizes = [(case.dims["batch"], case.dims["time"]) for case in made]
    assert {(1, 6), (4, 12), (1, 8), (4, 8), (2, 6), (2, 12), (3, 8), (2, 9)} == set(sizes)
    again = cases.boundary_cases(declared, {"batch": (1, 4), "time": (6, 12)}, example, [])
    assert all(
        torch.equal(one.inputs["x"].images, two.inputs["x"].images) for one, two in zip(made, again, strict=True)
    )


def test_a_dim_without_a_range_is_left_alone():
    declared = Declared(inputs=[DeclaredInput("x", ["batch", "time"], "float32")])
    made = cases.boundary_cases(declared, {"batch": (1, 4)}, RunCase("a", "user", "", {"x": torch.ones(2, 5)}), [])
    assert {case.dims["time"] for case in made} == {5}


def test_a_key_in_brackets_is_told_how_it_is_written():
    with pytest.raises(UsageError) as caught:
        casefiles.nest({"d['a']": 1, "x": 2}, "inputs")
    assert "Did you mean d.a?" in caught.value.hint
    assert "There is also: x." in caught.value.hint
