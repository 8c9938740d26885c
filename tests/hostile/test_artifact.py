"""Artifacts made to read what is not theirs: nothing outside the folder is opened, and nothing is passed over."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_ci.artifact.layout import Artifact, ArtifactError
from onnx_ci.artifact.safety import external_data_problems
from onnx_ci.artifact.tensors import read_values


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.bin").write_bytes(b"secret!!" * 2)
    inside = tmp_path / "artifact"
    inside.mkdir()
    (inside / "model.onnx.data").write_bytes(b"\0" * 16)
    return inside


def tensor(*entries: tuple[str, str]) -> TensorProto:
    made = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in entries:
        made.external_data.add(key=key, value=value)
    return made


def problems(folder: Path, *entries: tuple[str, str], made: TensorProto | None = None) -> list[str]:
    weight = tensor(*entries) if made is None else made
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [weight])
    (folder / "model.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    return external_data_problems(folder / "model.onnx")


@pytest.mark.parametrize(
    "location",
    [
        "../secret.bin",
        "weights/../../secret.bin",
        "./../secret.bin",
        "..",
        ".",
        "",
        "/etc/passwd",
        "C:\\secret.bin",
        "c:secret.bin",
        "..\\secret.bin",
        "model.onnx.data\0.png",
        "*/_ORT_MEM_ADDR_/*",
        "model.onnx.data/",
        "model.onnx.data/../model.onnx.data",
    ],
)
def test_a_location_outside_or_odd(folder: Path, location: str) -> None:
    found = problems(folder, ("location", location))
    assert len(found) == 1 or location == "model.onnx.data/"
    assert not any("secret!!" in problem for problem in found)


@pytest.mark.parametrize("target", ["../secret.bin", "model.onnx.data"])
def test_a_symbolic_link(folder: Path, target: str) -> None:
    (folder / "w.bin").symlink_to(target)
    assert problems(folder, ("location", "w.bin")) == ["w.bin is a link or no regular file"]


def test_a_symbolic_link_on_the_way(folder: Path) -> None:
    (folder / "weights").symlink_to("..")
    assert problems(folder, ("location", "weights/secret.bin")) == ["weights/secret.bin is a link or no regular file"]


def test_a_hard_link(folder: Path) -> None:
    os.link(folder.parent / "secret.bin", folder / "w.bin")
    assert problems(folder, ("location", "w.bin")) == ["w.bin is a hard link (2 names)"]


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file(folder: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(folder / "w.bin")
    elif kind == "folder":
        (folder / "w.bin").mkdir()
    else:
        (folder / "w.bin").symlink_to("/dev/zero")
    assert problems(folder, ("location", "w.bin")) == ["w.bin is a link or no regular file"]


@pytest.mark.parametrize(
    "numbers",
    [
        {"offset": "9", "length": "8"},
        {"offset": "17"},
        {"length": "17"},
        {"offset": "-1"},
        {"length": "-8"},
        {"offset": "1e3"},
        {"offset": "0x10"},
        {"offset": " 0"},
        {"offset": "1_0"},
        {"offset": ""},
        {"offset": "٣"},
        {"offset": "9" * 30},
        {"offset": str(2**63 - 1), "length": str(2**63 - 1)},
    ],
)
def test_numbers_outside_the_file_or_no_numbers(folder: Path, numbers: dict[str, str]) -> None:
    assert len(problems(folder, ("location", "model.onnx.data"), *numbers.items())) == 1


@pytest.mark.parametrize(
    "entries",
    [
        [("location", "model.onnx.data"), ("location", "../secret.bin")],
        [("location", "../secret.bin"), ("location", "model.onnx.data")],
        [("location", "model.onnx.data"), ("offset", "0"), ("offset", "99")],
        [("location", "model.onnx.data"), ("basepath", "/etc")],
        [("location", "model.onnx.data"), ("__class__", "x")],
    ],
)
def test_keys_that_readers_may_read_in_different_ways(folder: Path, entries: list[tuple[str, str]]) -> None:
    assert problems(folder, *entries) == ["w: its external data has a key twice, or one that is not known"]


def test_entries_without_the_flag_are_looked_at_too(folder: Path) -> None:
    made = tensor(("location", "../secret.bin"))
    made.ClearField("data_location")
    assert len(problems(folder, made=made)) == 1


def test_a_model_that_is_a_link(folder: Path) -> None:
    assert problems(folder, ("location", "model.onnx.data")) == []
    (folder / "model.onnx").rename(folder.parent / "kept.onnx")
    (folder / "model.onnx").symlink_to("../kept.onnx")
    assert external_data_problems(folder / "model.onnx") == ["model.onnx is a link or no regular file"]
    assert Artifact(folder).model.parent == folder.resolve()


def test_a_case_whose_data_lies_elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)  # where onnx would look
    (folder / "input_0.pb").write_bytes(tensor(("location", "model.onnx.data")).SerializeToString())
    with pytest.raises(ArtifactError, match="another file"):
        read_values(folder, "input")
    sequence = onnx.SequenceProto(name="s", elem_type=onnx.SequenceProto.TENSOR)
    sequence.tensor_values.append(tensor(("location", "model.onnx.data")))
    (folder / "input_0.pb").write_bytes(sequence.SerializeToString())
    with pytest.raises(ArtifactError, match="another file"):
        read_values(folder, "input")


def test_a_shape_bomb_is_refused_before_it_is_allocated(folder: Path) -> None:
    bomb = onnx.TensorProto(name="x", data_type=TensorProto.FLOAT, dims=[1 << 40], raw_data=b"\0" * 4)
    (folder / "input_0.pb").write_bytes(bomb.SerializeToString())
    with pytest.raises(ArtifactError):
        read_values(folder, "input")


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a":' * 200_000, "{" + '"a": 1,' * 3 + '"b": 2}', "NaN", '"' + "x" * 1000]
)
def test_json_made_to_hurt(folder: Path, text: str) -> None:
    for name in ("manifest.json", "contract.json", "cases.json", "config.json", "source_map.json"):
        (folder / name).write_text(text)
    artifact = Artifact(folder)
    for read in (artifact.manifest, artifact.contract, artifact.cases, artifact.job, artifact.source_map):
        with pytest.raises(ArtifactError) as caught:
            read()
        assert len(str(caught.value)) < 1000


def test_a_json_file_too_large_to_be_meant(folder: Path) -> None:
    with (folder / "cases.json").open("wb") as stream:
        stream.truncate(300 << 20)
    with pytest.raises(ArtifactError, match="more than it may have"):
        Artifact(folder).cases()


def test_the_control_is_read(folder: Path) -> None:
    (folder / "input_0.pb").write_bytes(numpy_helper.from_array(np.ones(2), "x").SerializeToString())
    assert list(read_values(folder, "input")) == ["x"]
