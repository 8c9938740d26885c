"""The list of a model's variants, from what lies in the artifacts folder and what the config has."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.fakes.results import contract

from onnx_ci.artifact import layout, variants
from onnx_ci.records import codec
from onnx_ci.records.model import Config, ModelSpec
from onnx_ci.records.report import Provenance
from onnx_ci.worker.artifacts import list_variants, write_provenance

CONFIG = Config(
    path="onnx-ci.toml",
    models=[
        ModelSpec(name="plain", entrypoint="model.py"),
        *(ModelSpec(name="pool", entrypoint="model.py", variant=name) for name in ("wide", "tall")),
    ],
    targets=[],
)


def exported(folder: Path, *labels: str) -> Path:
    for label in labels:
        (folder / label).mkdir(parents=True, exist_ok=True)
        layout.write_record(folder / label, layout.CONTRACT, contract(label))
        layout.write_manifest(folder / label)
    return folder


def listed(folder: Path) -> list[str]:
    return [one.folder for one in variants.read(variants.path_of(folder, "pool")).variants]


def test_the_list_has_the_variants_in_the_order_of_the_config(tmp_path):
    list_variants(CONFIG, exported(tmp_path, "plain", "pool@tall", "pool@wide"))
    assert listed(tmp_path) == ["pool@wide", "pool@tall"]
    assert [path.name for path in variants.lists_in(tmp_path)] == ["pool.variants.json"]


def test_a_variant_that_was_not_exported_is_not_listed(tmp_path):
    exported(tmp_path, "pool@wide", "pool@tall")
    (tmp_path / "pool@tall" / layout.MANIFEST).unlink()
    list_variants(CONFIG, tmp_path)
    assert listed(tmp_path) == ["pool@wide"]


def test_what_an_earlier_config_left_behind_is_not_listed(tmp_path):
    list_variants(CONFIG, exported(tmp_path, "pool@wide", "pool@old"))
    assert listed(tmp_path) == ["pool@wide"]


@pytest.mark.parametrize("models", [[ModelSpec(name="pool", entrypoint="model.py")], CONFIG.models])
def test_a_list_whose_variants_are_gone_goes_too(tmp_path, models):
    list_variants(CONFIG, exported(tmp_path, "plain", "pool@wide"))
    shutil.rmtree(tmp_path / "pool@wide")
    list_variants(Config(path="onnx-ci.toml", models=models, targets=[]), tmp_path)
    assert variants.lists_in(tmp_path) == []


def test_an_export_that_wrote_no_artifact_has_no_list(tmp_path):
    list_variants(CONFIG, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_the_artifacts_say_which_commit_they_are_of_where_that_is_known(tmp_path):
    write_provenance(tmp_path, "a" * 40, "7")
    made = codec.loads(Provenance, (tmp_path / "provenance.json").read_text())
    assert (made.commit, made.run) == ("a" * 40, "7")
    write_provenance(tmp_path, "", "")
    assert not (tmp_path / "provenance.json").exists()
    write_provenance(tmp_path / "none", "a" * 40, "7")
    assert not (tmp_path / "none").exists()
