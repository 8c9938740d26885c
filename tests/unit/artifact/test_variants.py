"""The list of a model's variants: what is written is read, and what could lead elsewhere is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from onnx_ci.artifact import layout, variants
from onnx_ci.artifact.layout import Artifact, ArtifactError
from onnx_ci.records.contract import Contract, TensorContract
from onnx_ci.records.environment import Environment
from onnx_ci.records.variants import Variant

ENVIRONMENT = Environment(onnx_ci="1", python="3.11", platform="Linux", cpu="", cores=1)
SMALL = Variant(
    variant="small", folder="pool@small", artifact="cd" * 32, contract="ab" * 32, inputs={"image": [1, 3, 48, 64]}
)


def contract(variant: str | None) -> Contract:
    return Contract(
        schema_version=1,
        model="pool",
        variant=variant,
        contract_version=1,
        inputs=[TensorContract(name="image", dtype="float32", shape=["batch", 3, 48, 64])],
        outputs=[],
        dims={},
        batch="independent",
        strategy="own",
        exporter="dynamo",
        opset=20,
        ir_version=10,
        domains={"": 20},
        environment=ENVIRONMENT,
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = variants.write(tmp_path, "pool", [SMALL])
    assert path == tmp_path / "pool.variants.json"
    found = variants.read(path)
    assert (found.model, found.variants) == ("pool", [SMALL])
    assert variants.lists_in(tmp_path) == [path]


def test_an_entry_says_what_the_contract_says(tmp_path: Path) -> None:
    folder = tmp_path / "pool@small"
    folder.mkdir()
    layout.write_record(folder, layout.CONTRACT, contract("small"))
    layout.write_manifest(folder)
    entry = variants.entry(Artifact(folder))
    assert (entry.variant, entry.folder, entry.inputs) == ("small", "pool@small", {"image": ["batch", 3, 48, 64]})
    assert entry.contract == layout.sha256(folder / layout.CONTRACT)
    assert entry.artifact == layout.sha256(folder / layout.MANIFEST)


def test_an_artifact_without_a_variant_has_no_entry(tmp_path: Path) -> None:
    layout.write_record(tmp_path, layout.CONTRACT, contract(None))
    with pytest.raises(ArtifactError, match="names no variant"):
        variants.entry(Artifact(tmp_path))


def test_a_list_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="missing"):
        variants.read(tmp_path / "pool.variants.json")


@pytest.mark.parametrize("folder", ["", ".", "..", "../pool@small", "/etc", "a/b", "a\\b", "C:x", "a\0b"])
def test_a_folder_that_leads_elsewhere_is_refused(tmp_path: Path, folder: str) -> None:
    path = edited(tmp_path, variants=[{**entry_json(), "folder": folder}])
    with pytest.raises(ArtifactError, match="is not a name beside it"):
        variants.read(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 9}, "schema version 9"),
        ({"variants": []}, "no variant"),
        ({"extra": 1}, "extra: unknown key"),
        ({"variants": [{"variant": "small"}]}, r"variants\[0\]\.folder: missing"),
    ],
)
def test_a_list_of_another_form_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        variants.read(edited(tmp_path, **change))


def test_a_variant_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="'small' stands twice"):
        variants.read(variants.write(tmp_path, "pool", [SMALL, SMALL]))


def test_a_link_in_place_of_the_list_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(variants.write(tmp_path, "other", [SMALL]).read_bytes())
    (tmp_path / "pool.variants.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArtifactError, match="missing"):
        variants.read(tmp_path / "pool.variants.json")


def entry_json() -> dict[str, Any]:
    return {"variant": "small", "folder": "pool@small", "artifact": "cd", "contract": "ab", "inputs": {}}


def edited(tmp_path: Path, **change: Any) -> Path:
    path = variants.write(tmp_path, "pool", [SMALL])
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **change}), encoding="utf-8")
    return path
