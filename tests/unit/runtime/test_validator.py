"""What a service is told of inputs that the model does not take."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from onnx_ci.artifact import layout
from onnx_ci.errors import OnnxCiError
from onnx_ci.records import codec
from onnx_ci.records.contract import Contract
from onnx_ci.runtime import ContractError, Validator, load_contract, validate

from .contracts import contract, dim, tensor

IMAGE = contract(
    {"images": ("float32", ["batch", 3, "height", "width"])},
    {"batch": dim(1, 8), "height": dim(32, 512, 8), "width": dim(32, None)},
)
TOKENS = contract(
    {"ids": ("int64", ["batch", "seq"]), "mask": ("bool", ["batch", "seq"])},
    {"batch": dim(1, 8), "seq": dim(1, 128)},
    frozen={"temperature": 0.7},
)


def told(made: Contract, inputs: Any, **more: Any) -> list[str]:
    return [str(problem) for problem in Validator(made, **more).problems(inputs)]


def one(made: Contract, inputs: Any, **more: Any) -> str:
    (message,) = told(made, inputs, **more)
    return message


def images(*shape: int, dtype: Any = np.float32) -> dict[str, Any]:
    return {"images": np.zeros(shape, dtype)}


def test_what_fits_passes() -> None:
    for shape in ((1, 3, 32, 32), (8, 3, 512, 10_000), (2, 3, 40, 33)):
        validate(IMAGE, images(*shape))
    validate(TOKENS, {"mask": np.ones((2, 7), bool), "ids": np.zeros((2, 7), np.int64)})


def test_memory_layout_does_not_matter() -> None:
    validate(IMAGE, {"images": np.zeros((2, 64, 64, 3), np.float32).transpose(0, 3, 1, 2)})
    validate(IMAGE, {"images": np.zeros((4, 3, 64, 64), np.float32)[::2]})
    read_only = np.zeros((1, 3, 32, 32), np.float32)
    read_only.flags.writeable = False
    validate(IMAGE, {"images": read_only})


def test_all_problems_come_at_once_and_bear_input_and_axis() -> None:
    with pytest.raises(ContractError) as caught:
        validate(IMAGE, {"images": np.zeros((9, 4, 36, 31)), "image": 1})
    problems = caught.value.problems
    assert [(item.input, item.axis, item.dim) for item in problems] == [
        ("image", None, ""),
        ("images", None, ""),
        ("images", 1, ""),
        ("images", 0, "batch"),
        ("images", 2, "height"),
        ("images", 3, "width"),
    ]
    assert str(caught.value).startswith("classifier does not take these inputs (6 problems):\n  - image: ")
    assert isinstance(caught.value, ValueError)


def test_the_error_names_the_variant_and_survives_pickling() -> None:
    made = contract({"x": ("float32", ["n"])}, {"n": dim(1, 2)}, model="pool", variant="48x64")
    with pytest.raises(ContractError) as caught:
        validate(made, {"x": np.zeros(3, np.float32)})
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert str(again).startswith("pool@48x64 does not take these inputs: x, axis 0 (n): 3, allowed are 1 to 2")


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        (np.float64, "dtype float64, allowed is float32; numpy makes float64 where nothing else is said"),
        (np.float16, "dtype float16, allowed is float32; convert it"),
        (np.int64, "dtype int64, allowed is float32"),
        (np.uint8, "changes the type alone: scale the values as the model's preprocessing does"),
        (bool, "dtype bool, allowed is float32"),
        (np.complex64, "dtype complex64, allowed is float32"),
        (">f4", "float32 of the other byte order, which the runtime reads wrongly"),
    ],
)
def test_another_dtype_is_told_what_to_do(dtype: Any, words: str) -> None:
    message = one(IMAGE, images(1, 3, 32, 32, dtype=dtype))
    assert words in message
    assert "images.astype(numpy.float32)" in message


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((1, 3), np.int32), "ids.astype(numpy.int64)"),
        (np.zeros((1, 3), np.float32), "drops what stands after the point"),
        (np.zeros((1, 3), ">i8"), "of the other byte order"),
        (np.array([[1, None, 2]], object), "Python objects (dtype object), allowed is int64; rows of unequal length"),
        (np.array([["a", "b", "c"]]), "text (<U1), allowed is int64; parse it"),
        (np.zeros((1, 3), "M8[s]"), "dtype datetime64[s], allowed is int64"),
    ],
)
def test_another_dtype_than_int64(array: np.ndarray[Any, Any], words: str) -> None:
    assert words in one(contract({"ids": ("int64", ["batch", "seq"])}), {"ids": array})


def test_the_platforms_names_of_one_dtype_are_one_dtype() -> None:
    made = contract({"ids": ("int64", ["n"])})
    assert told(made, {"ids": np.zeros(2, np.longlong)}) == []


def test_text_is_an_array_of_str() -> None:
    made = contract({"text": ("string", ["n"])})
    assert told(made, {"text": np.array(["a", "bc"])}) == []
    assert told(made, {"text": np.array(["a", "bc"], object)}) == []
    assert "bytes (|S2), which the runtime reads wrongly; allowed is text: text.astype(str)" in one(
        made, {"text": np.array([b"a", b"bc"])}
    )
    assert "allowed is text" in one(made, {"text": np.zeros(2)})


def test_bfloat16_goes_by_its_name() -> None:
    made = contract({"x": ("bfloat16", ["n"])})
    assert told(made, {"x": np.zeros(2, ml_dtypes.bfloat16)}) == []
    assert "x.astype(ml_dtypes.bfloat16)" in one(made, {"x": np.zeros(2, np.float32)})
    assert "bfloat16" in one(contract({"x": ("float32", ["n"])}), {"x": np.zeros(2, ml_dtypes.bfloat16)})


class Tensor:
    """Stands where torch's would: the check goes by the module's name, since a service may have no torch."""

    __module__ = "torch"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([[1, 2]], "a Python list, an array is needed: numpy.asarray(ids, dtype=numpy.int64)"),
        ((1, 2), "a Python tuple"),
        (5, "a Python int"),
        ("text", "a Python str"),
        (np.int64(5), "a numpy scalar"),
        (None, "None; only an optional input may be left out so"),
        (Tensor(), "a torch tensor, a numpy array is needed: ids.detach().cpu().numpy()"),
        (Path("x"), "of type pathlib."),
        (np.ma.masked_array([[1]], mask=[[True]]), "a masked array, of which the runtime reads the masked places too"),
    ],
)
def test_what_is_no_array_is_told(value: object, words: str) -> None:
    assert words in one(contract({"ids": ("int64", ["batch", "seq"])}), {"ids": value})


def test_other_subclasses_of_arrays_pass() -> None:
    made = contract({"x": ("float32", [1, 2])})
    assert told(made, {"x": np.zeros((1, 2), np.float32).view(np.recarray)}) == []


@pytest.mark.parametrize("inputs", [[1, 2], None, np.zeros(3)])
def test_inputs_that_do_not_come_by_name(inputs: object) -> None:
    assert 'arrays by name are needed: {"ids": …, "mask": …}' in one(TOKENS, inputs)


def test_names_are_told_with_what_was_likely_meant() -> None:
    found = told(TOKENS, {"IDs": np.zeros((1, 2), np.int64), "mask": np.ones((1, 2), bool)})
    assert found == [
        "ids: missing; given are IDs, mask, the file takes ids, mask",
        "IDs: no such input; did you mean ids?",
    ]


def test_an_argument_that_became_a_constant_is_told() -> None:
    inputs = {"ids": np.zeros((1, 2), np.int64), "mask": np.ones((1, 2), bool), "temperature": np.float32(0.5)}
    assert "it became a constant at export (0.7)" in one(TOKENS, inputs)
    assert "names are text" in one(contract({}), {3: np.zeros(1)})


def test_a_dim_that_two_inputs_share_must_agree() -> None:
    inputs = {"ids": np.zeros((1, 2), np.int64), "mask": np.ones((4, 2), bool)}
    assert one(TOKENS, inputs) == ("mask, axis 0 (batch): 4, but ids, axis 0 has 1; both are one dim and must be equal")


def test_a_dim_that_stands_twice_in_one_input_must_agree() -> None:
    made = contract({"adjacency": ("float32", ["n", "n"])}, {"n": dim(1, 9)})
    assert told(made, {"adjacency": np.zeros((3, 3), np.float32)}) == []
    assert "adjacency, axis 1 (n): 4, but adjacency, axis 0 has 3" in one(
        made, {"adjacency": np.zeros((3, 4), np.float32)}
    )


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((0, 3, 32, 32), "axis 0 (batch): 0, allowed are 1 to 8; there is nothing to compute: leave the call out"),
        ((9, 3, 32, 32), "axis 0 (batch): 9, allowed are 1 to 8; split, crop or resize it"),
        ((1, 3, 36, 32), "axis 2 (height): 36, allowed are multiples of 8 from 32 to 512; pad or crop to 32 or 40"),
        ((1, 3, 24, 32), "axis 2 (height): 24, allowed are multiples of 8 from 32 to 512; pad or resize it"),
        ((1, 3, 32, 31), "axis 3 (width): 31, allowed are from 32 up; pad or resize it"),
        ((1, 4, 32, 32), "axis 1: 4, allowed is 3 only, which is fixed in the file"),
    ],
)
def test_a_size_outside_is_told_with_what_is_inside(shape: tuple[int, ...], words: str) -> None:
    assert words in one(IMAGE, images(*shape))


def test_no_size_is_suggested_that_is_refused_itself() -> None:
    made = contract({"x": ("float32", ["n"])}, {"n": dim(30, 34, 8)})
    assert "pad or crop to 32" in one(made, {"x": np.zeros(33, np.float32)})
    none = contract({"x": ("float32", ["n"])}, {"n": dim(33, 34, 8)})
    assert one(none, {"x": np.zeros(33, np.float32)}).endswith("allowed are multiples of 8 from 33 to 34")


def test_an_empty_batch_passes_where_the_range_has_it() -> None:
    made = contract({"x": ("float32", ["n", 3])}, {"n": dim(0, 4)})
    assert told(made, {"x": np.zeros((0, 3), np.float32)}) == []


def test_a_dim_without_a_range_takes_every_size_that_agrees() -> None:
    made = contract({"x": ("float32", ["s0"]), "y": ("float32", ["s0"])})
    assert told(made, {"x": np.zeros(0, np.float32), "y": np.zeros(0, np.float32)}) == []
    assert len(told(made, {"x": np.zeros(0, np.float32), "y": np.zeros(7, np.float32)})) == 1


def test_channels_last_is_told_as_such() -> None:
    found = told(IMAGE, images(1, 224, 224, 3))
    assert "images.transpose(0, 3, 1, 2)" in found[0]
    last = contract({"images": ("float32", ["batch", "height", "width", 3])})
    assert "images.transpose(0, 2, 3, 1)" in told(last, images(1, 3, 64, 80))[0]
    assert not any("transpose" in message for message in told(IMAGE, images(1, 4, 224, 224)))


def test_a_missing_batch_axis_is_told_as_such() -> None:
    assert one(IMAGE, images(3, 64, 64)) == (
        "images: 3 axes [3, 64, 64], allowed is 4 axes [batch 1..8, 3, height 32..512 step 8, width 32..]; "
        "if it is one item of a batch: images[None]"
    )
    assert one(contract({"x": ("float32", [])}), {"x": np.zeros(1, np.float32)}).endswith(
        "1 axis [1], allowed is no axis []; the first axis holds one item: x[0]"
    )


PAIRED = contract({"x": ("float32", ["2*half", "half"])}, {"half": dim(4, 32)})


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((8, 4), None),
        ((64, 32), None),
        ((9, 4), "axis 0: 9, but 2*half is 8 with half = 4"),
        ((66, 33), "axis 1 (half): 33, allowed are 4 to 32"),
    ],
)
def test_an_axis_that_another_determines(shape: tuple[int, ...], words: str | None) -> None:
    found = told(PAIRED, {"x": np.zeros(shape, np.float32)})
    assert found == [] if words is None else (len(found) == 1 and words in found[0])


@pytest.mark.parametrize(
    ("text", "size", "words"),
    [
        ("2*half", 10, None),
        ("2*half", 9, "9 is 2*half for no half that is allowed (4 to 32)"),
        ("2*half", 66, "66 makes half 33, allowed are 4 to 32"),
        ("2*half", 6, "6 makes half 3, allowed are 4 to 32"),
        ("half + 3", 2, "2 is half + 3 for no half"),
        ("half//4", 8, None),
        ("half//4", 9, "9 is half//4 for no half"),
        ("half*half", 25, None),
        ("half*half", 26, "26 is half*half for no half"),
        ("max(half, 8)", 7, "7 is max(half, 8) for no half"),
        ("half//0", 3, "3 is half//0 for no half"),
        ("a*b", 7, None),  # two unknowns: nothing can be said
        ("floor(half/2)", 7, None),  # outside of the grammar
        ("?", 7, None),
        ("3*4", 12, None),
        ("3*4", 13, "13, allowed is 12 only"),
    ],
)
def test_an_expression_alone_is_solved(text: str, size: int, words: str | None) -> None:
    made = contract({"x": ("float32", [text])}, {"half": dim(4, 32)})
    found = told(made, {"x": np.zeros(size, np.float32)})
    assert found == [] if words is None else (len(found) == 1 and words in found[0])


def test_expressions_are_solved_in_the_order_in_which_they_can_be() -> None:
    made = contract({"x": ("float32", ["a + b", "2*a", "b"])}, {"a": dim(1, 9), "b": dim(1, 9)})
    assert told(made, {"x": np.zeros((5, 4, 3), np.float32)}) == []
    assert "6, but a + b is 5 with a = 2, b = 3" in one(made, {"x": np.zeros((6, 4, 3), np.float32)})


SEQUENCE = contract({"boxes": ("sequence(float32)", ["n", 4])}, {"n": dim(1, 9)})


def test_a_list_of_arrays_for_a_sequence() -> None:
    assert told(SEQUENCE, {"boxes": []}) == []
    assert told(SEQUENCE, {"boxes": [np.zeros((n, 4), np.float32) for n in (1, 9, 2)]}) == []
    found = told(SEQUENCE, {"boxes": [np.zeros((1, 4)), np.zeros((10, 4), np.float32), [1]]})
    assert [message.partition(":")[0] for message in found] == ["boxes[0]", "boxes[1], axis 0 (n)", "boxes[2]"]
    assert "of type ndarray, a list of arrays is needed" in one(SEQUENCE, {"boxes": np.zeros((1, 4), np.float32)})
    assert "of type tuple, a list of arrays is needed" in one(SEQUENCE, {"boxes": ()})


def test_none_for_an_optional_input() -> None:
    made = contract({"state": ("optional(float32)", None)})
    assert told(made, {"state": None}) == []
    assert told(made, {"state": np.zeros((3, 1), np.float32)}) == []
    assert "float64" in one(made, {"state": np.zeros(3)})


VALUES = contract(
    [
        tensor("pixels", "float32", ["n"], low=0.0, high=1.0),
        tensor("kind", "int64", ["n"], values=[0.0, 1.0, 5.0]),
        tensor("free", "float32", ["n"]),
        tensor("gaps", "float32", ["n"], low=0.0, high=1.0, nonfinite=["nan", "inf"]),
    ]
)


def values(**changes: list[float]) -> dict[str, Any]:
    inputs: dict[str, list[float]] = {
        "pixels": [0, 1, 0.5],
        "kind": [0, 1, 5],
        "free": [1e30, -np.inf, 0],
        "gaps": [0, 1, 1],
    }
    inputs |= changes
    dtypes = dict.fromkeys(inputs, np.float32) | {"kind": np.int64}
    return {name: np.array(value, dtypes[name]) for name, value in inputs.items()}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        (
            {"pixels": [0, 255, 7]},
            "pixels: 2 of 3 values are outside of 0 to 1, the first at [1]; they run from 0.0 to 255.0",
        ),
        ({"pixels": [0, np.inf, 1]}, "1 of 3 values is outside of 0 to 1"),
        ({"kind": [0, 2, 5]}, "kind: 1 of 3 values is outside of the values 0, 1, 5: 2 at [1]"),
        ({"free": [0, 1, np.nan]}, "free: 1 of 3 values is NaN, the first at [2]"),
        ({"pixels": [0, 1, np.nan]}, "pixels: 1 of 3 values is NaN"),
        ({"gaps": [0, np.nan, np.inf]}, None),
        ({"gaps": [0, np.nan, -np.inf]}, "gaps: 1 of 3 values is outside of 0 to 1, the first at [2]"),
        ({"gaps": [0, np.nan, 3]}, "they run from 0.0 to 3.0"),
    ],
)
def test_values_are_looked_at_when_asked(changes: Mapping[str, list[float]], words: str | None) -> None:
    assert told(VALUES, values(**changes)) == []
    found = told(VALUES, values(**changes), check_values=True)
    assert found == [] if words is None else (len(found) == 1 and words in found[0])


def test_values_of_other_dtypes_are_looked_at_too() -> None:
    half = contract([tensor("x", "bfloat16", ["n"], low=0.0)])
    assert "outside of 0 and more" in one(half, {"x": np.array([-1, 1], ml_dtypes.bfloat16)}, check_values=True)
    text = contract([tensor("x", "string", ["n"])])
    assert told(text, {"x": np.array(["a"])}, check_values=True) == []
    empty = contract([tensor("x", "float32", ["n"], low=0.0)])
    assert told(empty, {"x": np.zeros(0, np.float32)}, check_values=True) == []


def test_a_contract_is_read_from_its_file_or_folder(tmp_path: Path) -> None:
    layout.write_record(tmp_path, layout.CONTRACT, IMAGE)
    for path in (tmp_path, tmp_path / layout.CONTRACT, str(tmp_path)):
        assert load_contract(path) == IMAGE
        validate(path, images(1, 3, 32, 32))
        with pytest.raises(ContractError):
            validate(path, images(1, 3, 32, 31))


def test_a_contract_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(OnnxCiError, match=r"contract\.json: the contract can't be read: No such file"):
        load_contract(tmp_path)
    (tmp_path / layout.CONTRACT).write_text("{}", encoding="utf-8")
    with pytest.raises(OnnxCiError, match="not a contract: schema_version: missing"):
        load_contract(tmp_path)
    newer = {**codec.encode(IMAGE), "schema_version": 9}
    (tmp_path / layout.CONTRACT).write_text(json.dumps(newer), encoding="utf-8")
    with pytest.raises(OnnxCiError, match="schema version 9, this onnx-ci reads 1"):
        load_contract(tmp_path)


IMPORTED = """
import json, sys, numpy
before = set(sys.modules)
from onnx_ci.runtime import Validator, validate, ContractError
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_importing_it_loads_numpy_and_hardly_more() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, timeout=120, check=True)
    loaded = set(json.loads(done.stdout))
    assert {name for name in loaded if name.startswith("onnx_ci")} == {
        "onnx_ci",
        "onnx_ci.records",
        "onnx_ci.records.base",
        "onnx_ci.records.expression",
        "onnx_ci.runtime",
        "onnx_ci.runtime.dtypes",
        "onnx_ci.runtime.problems",
        "onnx_ci.runtime.sizes",
        "onnx_ci.runtime.validator",
        "onnx_ci.runtime.values",
        "onnx_ci.runtime.words",
    }
    others = {name.partition(".")[0] for name in loaded} - {"onnx_ci"}
    assert others <= set(sys.stdlib_module_names) | {"org"}  # copy tries Jython's
    assert not others & {"difflib", "json", "hashlib", "urllib", "ipaddress", "typing_extensions"}
