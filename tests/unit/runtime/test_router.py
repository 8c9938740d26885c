"""One model in several fixed sizes, as a service meets it."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_ci.artifact import layout, variants
from onnx_ci.artifact.layout import Artifact, ArtifactError
from onnx_ci.records.contract import DimContract
from onnx_ci.runtime import ContractError, NoVariantError, Router

from .contracts import contract, dim, tensor

SIZES = {"48x64": (48, 64), "64x48": (64, 48)}
BATCH = {"batch": dim(1, 4)}


def write_variant(
    artifacts: Path,
    name: str,
    shape: list[int | str],
    dims: dict[str, DimContract] | None = None,
    *,
    external: bool = False,
) -> variants.Variant:
    """y = image · n, where n is the number of variants written before."""
    folder = artifacts / f"pool@{name}"
    folder.mkdir(parents=True)
    factor = float(len(list(artifacts.iterdir())))
    graph = helper.make_graph(
        [helper.make_node("Mul", ["image", "factor"], ["y"])],
        "main",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.array([factor], np.float32), "factor")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    save = {"save_as_external_data": True, "location": layout.DATA, "size_threshold": 0} if external else {}
    onnx.save_model(model, str(folder / layout.MODEL), **save)
    made = contract([tensor("image", "float32", shape)], BATCH | (dims or {}), model="pool", variant=name)
    layout.write_record(folder, layout.CONTRACT, made)
    layout.write_manifest(folder)
    return variants.entry(Artifact(folder))


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    folder = tmp_path / "artifacts"
    listed = [write_variant(folder, name, ["batch", 1, *size]) for name, size in SIZES.items()]
    variants.write(folder, "pool", listed)
    return folder


def image(*shape: int, dtype: Any = np.float32) -> dict[str, Any]:
    return {"image": np.ones(shape, dtype)}


def test_the_size_picks_the_variant(artifacts: Path) -> None:
    router = Router(artifacts)
    assert router.pick(image(2, 1, 48, 64)) == "48x64"
    assert router.pick(image(1, 1, 64, 48)) == "64x48"
    first, second = router.run(image(2, 1, 48, 64)), router.run(image(1, 1, 64, 48))
    assert (first["y"].shape, float(first["y"].max())) == ((2, 1, 48, 64), 1.0)
    assert (second["y"].shape, float(second["y"].max())) == ((1, 1, 64, 48), 2.0)
    assert set(router.run(image(1, 1, 64, 48), outputs=["y"])) == {"y"}


def test_what_no_variant_takes_is_refused_with_what_is_supported(artifacts: Path) -> None:
    with pytest.raises(NoVariantError) as caught:
        Router(artifacts).run(image(1, 1, 50, 70))
    assert str(caught.value) == (
        "pool does not take these inputs: no variant has these sizes: image [1, 1, 50, 70]\n"
        "Supported are:\n"
        "  - 48x64: image [batch 1..4, 1, 48, 64]\n"
        "  - 64x48: image [batch 1..4, 1, 64, 48]"
    )
    assert caught.value.supported == Router(artifacts).supported
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_what_is_wrong_for_every_variant_is_told_as_such(artifacts: Path) -> None:
    router = Router(artifacts)
    with pytest.raises(ContractError, match=r"image\.astype\(numpy\.float32\)"):
        router.run(image(1, 1, 48, 64, dtype=np.float64))
    with pytest.raises(ContractError, match="did you mean image"):
        router.run({"Image": np.ones((1, 1, 48, 64), np.float32)})
    with pytest.raises(ContractError, match=r"axis 0 \(batch\): 9, allowed are 1 to 4"):
        router.run(image(9, 1, 48, 64))


def test_sessions_are_opened_when_they_are_needed_and_kept(artifacts: Path) -> None:
    shutil.move(str(artifacts / "pool@64x48" / layout.MODEL), str(artifacts / "gone.onnx"))
    router = Router(artifacts)
    router.run(image(1, 1, 48, 64))
    assert router.session("48x64") is router.session("48x64")
    with pytest.raises(ArtifactError, match=r"model\.onnx is missing"):
        router.run(image(1, 1, 64, 48))
    shutil.move(str(artifacts / "gone.onnx"), str(artifacts / "pool@64x48" / layout.MODEL))
    assert router.run(image(1, 1, 64, 48))["y"].shape == (1, 1, 64, 48)


def test_threads_open_one_session_between_them(artifacts: Path) -> None:
    router = Router(artifacts)
    start = threading.Barrier(8)
    found: list[Any] = []

    def work() -> None:
        start.wait(timeout=30)
        found.append(router.session("48x64"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(found) == 8
    assert len({id(session) for session in found}) == 1


def test_options_and_providers_are_the_callers(artifacts: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 3
    router = Router(artifacts, providers=[("CPUExecutionProvider", {})], session_options=options)
    assert router.session("48x64").get_session_options().intra_op_num_threads == 3
    with pytest.raises(ArtifactError, match="ONNX Runtime here has no CUDAExecutionProvider"):
        Router(artifacts, providers=["CUDAExecutionProvider"]).run(image(1, 1, 48, 64))


def test_values_are_checked_when_asked(artifacts: Path) -> None:
    bad = {"image": np.full((1, 1, 48, 64), np.nan, np.float32)}
    Router(artifacts).run(bad)
    with pytest.raises(NoVariantError):
        Router(artifacts, check_values=True).run(bad)


@pytest.mark.parametrize("external", [False, True])
def test_other_bytes_than_the_exported_ones_are_not_opened(tmp_path: Path, *, external: bool) -> None:
    listed = [write_variant(tmp_path, "a", [1, 2], external=external)]
    router = Router(variants.write(tmp_path, "pool", listed))
    file = tmp_path / "pool@a" / (layout.DATA if external else layout.MODEL)
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    with pytest.raises(ArtifactError, match=f"{file.name} is not the exported one"):
        router.run(image(1, 2))


def data_added(folder: Path) -> None:
    (folder / layout.DATA).write_bytes(b"weights")


def manifest_written_again(folder: Path) -> None:
    (folder / "note.txt").write_text("later", encoding="utf-8")
    layout.write_manifest(folder)


def model_linked(folder: Path) -> None:
    shutil.move(str(folder / layout.MODEL), str(folder.parent / "elsewhere.onnx"))
    (folder / layout.MODEL).symlink_to(folder.parent / "elsewhere.onnx")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (data_added, r"model\.onnx\.data is not the exported one"),
        (manifest_written_again, r"manifest\.json is not the one that the list of variants names"),
        (model_linked, r"model\.onnx is not the exported one"),
    ],
)
def test_a_folder_changed_after_the_export_is_not_opened(
    artifacts: Path, change: Callable[[Path], None], message: str
) -> None:
    change(artifacts / "pool@48x64")
    with pytest.raises(ArtifactError, match=message):
        Router(artifacts).run(image(1, 1, 48, 64))


def test_another_contract_than_the_listed_one_is_refused(artifacts: Path) -> None:
    made = contract([tensor("image", "float32", [1])], model="pool", variant="48x64")
    layout.write_record(artifacts / "pool@48x64", layout.CONTRACT, made)
    with pytest.raises(ArtifactError, match="not the contract that the list of variants names"):
        Router(artifacts)


def test_a_folder_under_another_variants_name_is_refused(artifacts: Path) -> None:
    listed = variants.read(variants.path_of(artifacts, "pool")).variants
    swapped = [replace(one, variant=other.variant) for one, other in zip(listed, reversed(listed), strict=True)]
    variants.write(artifacts, "pool", swapped)
    with pytest.raises(ArtifactError, match="it is the contract of pool@48x64, not of pool@64x48"):
        Router(artifacts)


def test_a_missing_folder_is_told(artifacts: Path) -> None:
    shutil.rmtree(artifacts / "pool@64x48")
    with pytest.raises(ArtifactError, match="the folder of the variant 64x48 has no contract"):
        Router(artifacts)


def test_two_variants_that_take_one_input_are_an_error(tmp_path: Path) -> None:
    listed = [
        write_variant(tmp_path, "low", ["n", 3], {"n": dim(1, 8)}),
        write_variant(tmp_path, "high", ["n", 3], {"n": dim(8, 16)}),
    ]
    variants.write(tmp_path, "pool", listed)
    with pytest.raises(ArtifactError, match=r"the variants low and high both take image \[8, 3\]"):
        Router(tmp_path)


def test_what_only_an_input_shows_to_be_ambiguous_is_refused_then(tmp_path: Path) -> None:
    listed = [
        write_variant(tmp_path, "even", ["2*n"], {"n": dim(1, 8)}),
        write_variant(tmp_path, "any", ["n"], {"n": dim(1, 8)}),
    ]
    router = Router(variants.write(tmp_path, "pool", listed))
    assert router.pick(image(3)) == "any"
    assert router.pick(image(10)) == "even"
    with pytest.raises(ContractError, match="the variants even and any both take these inputs"):
        router.run(image(4))


def test_a_model_is_named_where_there_are_several(artifacts: Path) -> None:
    shutil.copy(variants.path_of(artifacts, "pool"), variants.path_of(artifacts, "other"))
    with pytest.raises(ArtifactError, match=r"several models have variants here: other\.variants\.json, pool"):
        Router(artifacts)
    assert Router(artifacts, model="pool").model == "pool"
    with pytest.raises(ArtifactError, match="the list of variants is missing"):
        Router(artifacts, model="none")


def test_a_folder_without_variants_is_told(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no list of variants"):
        Router(tmp_path)
    with pytest.raises(ArtifactError, match="no such folder"):
        Router(tmp_path / "none")


LAZY = """
import sys
from onnx_ci.runtime import Router
router = Router(sys.argv[1])
import numpy
router.pick({"image": numpy.ones((1, 1, 48, 64), numpy.float32)})
heavy = {"onnx", "onnxruntime", "torch"}
before = heavy & set(sys.modules)
router.session("48x64")
print(sorted(before), sorted(heavy & set(sys.modules)))
"""


def test_the_runtime_is_imported_with_the_first_session(artifacts: Path) -> None:
    command = [sys.executable, "-c", LAZY, str(artifacts)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[] ['onnxruntime']\n"
