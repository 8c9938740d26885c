from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import numpy_helper

from onnx_ci.artifact.layout import ArtifactError
from onnx_ci.artifact.tensors import dtype_name, read_values, write_values

SMALL = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", "float4_e2m1fn", "int2", "uint2"]
PLAIN = [
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex64",
    "complex128",
]


def through(folder: Path, *values: Any) -> list[Any]:
    names = [f"v{n}" for n in range(len(values))]
    write_values(folder, "output", names, values)
    back = read_values(folder, "output")
    assert list(back) == names
    return list(back.values())


def same(one: np.ndarray, two: np.ndarray) -> bool:
    return one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes()


class TestRoundTrip:
    @pytest.mark.parametrize("name", PLAIN + SMALL)
    @pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3)])
    def test_every_dtype_and_shape(self, tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
        dtype = np.dtype(getattr(ml_dtypes, name)) if name in SMALL else np.dtype(name)
        array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
        (back,) = through(tmp_path, array)
        assert same(back, array)
        assert dtype_name(back) == name

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
    @given(
        hnp.arrays(hnp.floating_dtypes(sizes=(16, 32, 64), endianness="="), hnp.array_shapes(min_dims=0, max_dims=4))
    )
    def test_floats_keep_every_bit(self, tmp_path: Path, array: np.ndarray) -> None:
        assert same(through(tmp_path, array)[0], array)

    @pytest.mark.parametrize(
        "array",
        [
            np.array(["a", "", "é\n"], object),
            np.array(["a", "bc"]),
            np.array([b"a"], object),
            np.array([], object),
            np.array("alone", object),
        ],
    )
    def test_strings(self, tmp_path: Path, array: np.ndarray) -> None:
        (back,) = through(tmp_path, array)
        assert back.shape == array.shape
        assert (
            back.tolist() == [s.decode() if isinstance(s, bytes) else s for s in array.reshape(-1)] or array.ndim == 0
        )
        assert dtype_name(back) == "string"

    @pytest.mark.parametrize("length", [0, 1, 2, 3])
    def test_sequences_of_any_length(self, tmp_path: Path, length: int) -> None:
        values = [np.full((n + 1, 2), n, np.float32) for n in range(length)]
        (back,) = through(tmp_path, values)
        assert isinstance(back, list)
        assert len(back) == length
        assert all(same(one, two) for one, two in zip(back, values, strict=True))

    @pytest.mark.parametrize(
        "items", [[np.array(1.0)], [np.array(["x"], object)], [np.zeros(0, np.int64)], [np.ones(2, ml_dtypes.bfloat16)]]
    )
    def test_sequences_of_one_of_any_kind(self, tmp_path: Path, items: list[np.ndarray]) -> None:
        (back,) = through(tmp_path, items)
        assert isinstance(back, list)
        assert back[0].shape == items[0].shape
        assert dtype_name(back[0]) == dtype_name(items[0])

    @pytest.mark.parametrize("keys", [(0, 7), (-1, 2**62), ("", "float32"), ("a", "ü")])
    def test_sequences_of_maps(self, tmp_path: Path, keys: tuple[Any, Any]) -> None:
        given = [{keys[0]: np.array(row, np.float32), keys[1]: np.array(9, np.float32)} for row in range(3)]
        (back,) = through(tmp_path, given)
        assert [list(item) for item in back] == [list(keys)] * 3
        assert all(same(one[key], other[key]) for one, other in zip(back, given, strict=True) for key in keys)

    def test_maps_that_the_files_have_no_form_for(self, tmp_path: Path) -> None:
        with pytest.raises(ArtifactError, match="outside of a sequence"):
            write_values(tmp_path, "output", ["m"], [{1: np.array(1)}])
        with pytest.raises(ArtifactError, match="neither whole numbers nor text"):
            write_values(tmp_path, "output", ["m"], [[{1.5: np.array(1)}]])

    def test_an_empty_optional(self, tmp_path: Path) -> None:
        assert through(tmp_path, None) == [None]

    def test_all_kinds_side_by_side_and_more_than_ten(self, tmp_path: Path) -> None:
        values = [np.float32(n).reshape(()) for n in range(11)]
        back = through(tmp_path, None, [], *values)
        assert back[:2] == [None, []]
        assert [float(one) for one in back[2:]] == list(range(11))

    @pytest.mark.parametrize(
        "array", [np.arange(6, dtype=">f4").reshape(2, 3), np.arange(6.0).reshape(2, 3).T, np.arange(9)[::2]]
    )
    def test_memory_layout_does_not_matter(self, tmp_path: Path, array: np.ndarray) -> None:
        (back,) = through(tmp_path, array)
        assert back.tolist() == array.tolist()
        assert back.dtype.name == array.dtype.name

    @pytest.mark.parametrize("name", ["", "é", "a" * 200, "1", "\x01"])
    @pytest.mark.parametrize("value", [np.ones(2), [np.ones(2), np.ones(3)], [], None])
    def test_a_name_never_turns_one_kind_into_another(self, tmp_path: Path, name: str, value: Any) -> None:
        write_values(tmp_path, "output", [name], [value])
        back = read_values(tmp_path, "output")
        assert list(back) == [name or "output_0"]
        (got,) = back.values()
        assert type(got) is type(value)
        assert len(got) == len(value) if isinstance(value, list) else True

    def test_kinds_do_not_mix(self, tmp_path: Path) -> None:
        for kind in ("input", "output", "oracle"):
            write_values(tmp_path, kind, [kind], [np.ones(1)])
        assert list(read_values(tmp_path, "oracle")) == ["oracle"]

    def test_nothing_there_is_nothing(self, tmp_path: Path) -> None:
        assert read_values(tmp_path, "input") == {}
        assert read_values(tmp_path / "absent", "input") == {}


class TestForeignFiles:
    def write(self, folder: Path, message: Any) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "input_0.pb").write_bytes(message.SerializeToString())

    @pytest.mark.parametrize(
        "tensor",
        [
            onnx.helper.make_tensor("", onnx.TensorProto.FLOAT, [2], [1, 2]),
            onnx.helper.make_tensor("", onnx.TensorProto.INT64, [2], [1, 2]),
            onnx.helper.make_tensor("", onnx.TensorProto.DOUBLE, [], [1]),
            onnx.helper.make_tensor("", onnx.TensorProto.BOOL, [1], [True]),
            onnx.helper.make_tensor("", onnx.TensorProto.STRING, [1], [b"x"]),
            onnx.helper.make_tensor("", onnx.TensorProto.FLOAT, [0], []),
            onnx.helper.make_tensor("", onnx.TensorProto.UINT64, [1], [1]),
        ],
    )
    def test_unnamed_tensors_with_typed_fields(self, tmp_path: Path, tensor: onnx.TensorProto) -> None:
        self.write(tmp_path, tensor)
        (value,) = read_values(tmp_path, "input").values()
        assert isinstance(value, np.ndarray)
        assert value.shape == tuple(tensor.dims)

    def test_as_onnx_writes_sequences(self, tmp_path: Path) -> None:
        self.write(tmp_path, numpy_helper.from_list([np.ones(2), np.ones(3)], "s"))
        value = read_values(tmp_path, "input")["s"]
        assert isinstance(value, list)
        assert [one.shape for one in value] == [(2,), (3,)]

    def test_as_onnx_writes_maps(self, tmp_path: Path) -> None:
        self.write(tmp_path, numpy_helper.from_list([{1: np.array(2.5)}, {1: np.array(3.5)}], "m"))
        assert read_values(tmp_path, "input")["m"] == [{1: 2.5}, {1: 3.5}]

    def test_a_map_whose_values_are_no_scalars_is_refused(self, tmp_path: Path) -> None:
        self.write(tmp_path, numpy_helper.from_list([{1: np.zeros(2)}], "m"))
        with pytest.raises(ArtifactError, match="not scalars of one dtype"):
            read_values(tmp_path, "input")

    def test_as_onnx_writes_an_empty_optional(self, tmp_path: Path) -> None:
        self.write(tmp_path, numpy_helper.from_optional(None, "o"))
        assert read_values(tmp_path, "input") == {"o": None}


class TestFaults:
    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"\0",
            b"not a protobuf at all",
            onnx.TensorProto(data_type=1, dims=[2], raw_data=b"\0\0\0\0").SerializeToString(),
            onnx.TensorProto(data_type=1, dims=[2, 2], raw_data=b"\0" * 8).SerializeToString(),
            onnx.TensorProto(data_type=1, dims=[-1], raw_data=b"\0" * 8).SerializeToString(),
            onnx.TensorProto(data_type=1, dims=[2**40, 2**40], raw_data=b"\0" * 8).SerializeToString(),
            onnx.TensorProto(data_type=99, dims=[1], raw_data=b"\0").SerializeToString(),
            numpy_helper.from_array(np.ones(100), "x").SerializeToString()[:-10],
            onnx.SequenceProto(name="s", elem_type=onnx.SequenceProto.SEQUENCE).SerializeToString(),
        ],
    )
    def test_a_broken_file_is_no_value(self, tmp_path: Path, raw: bytes) -> None:
        (tmp_path / "output_0.pb").write_bytes(raw)
        with pytest.raises(ArtifactError) as caught:
            read_values(tmp_path, "output")
        assert "output_0.pb" in str(caught.value)

    @given(st.binary(max_size=60))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_any_bytes_are_a_value_or_an_error_of_ours(self, tmp_path: Path, raw: bytes) -> None:
        (tmp_path / "output_0.pb").write_bytes(raw)
        with contextlib.suppress(ArtifactError):
            read_values(tmp_path, "output")

    def test_a_missing_number(self, tmp_path: Path) -> None:
        through(tmp_path, np.ones(1), np.ones(1), np.ones(1))
        (tmp_path / "output_1.pb").unlink()
        with pytest.raises(ArtifactError, match=r"output_1\.pb is missing"):
            read_values(tmp_path, "output")

    @pytest.mark.parametrize("name", ["output_x.pb", "output_01.pb", "output_.pb", "output_-1.pb", "output_².pb"])
    def test_a_file_without_a_number(self, tmp_path: Path, name: str) -> None:
        through(tmp_path, np.ones(1))
        (tmp_path / name).write_bytes((tmp_path / "output_0.pb").read_bytes())
        with pytest.raises(ArtifactError, match="has no number"):
            read_values(tmp_path, "output")

    def test_a_name_twice(self, tmp_path: Path) -> None:
        write_values(tmp_path, "output", ["y", "y"], [np.ones(1), np.ones(1)])
        with pytest.raises(ArtifactError, match="y stands twice"):
            read_values(tmp_path, "output")

    @pytest.mark.parametrize(
        "value", [np.array([object()]), np.array(["2026"], "M8[Y]"), np.zeros(1, "V2"), np.zeros(1, "i4,f4")]
    )
    def test_what_onnx_lacks_is_not_written(self, tmp_path: Path, value: np.ndarray) -> None:
        with pytest.raises(ArtifactError, match="y h"):
            write_values(tmp_path, "output", ["y"], [value])

    def test_names_and_values_must_match(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="zip"):
            write_values(tmp_path, "output", ["y"], [])

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes by name")
    def test_a_pipe_does_not_block(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "output_0.pb")
        with pytest.raises(ArtifactError, match="not a regular file"):
            read_values(tmp_path, "output")
