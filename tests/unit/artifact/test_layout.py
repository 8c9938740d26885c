from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from onnx_ci.artifact.layout import Artifact, ArtifactError, changed_files, sha256, write_manifest, write_record
from onnx_ci.records.cases import Case, CaseList


@pytest.fixture
def artifact(tmp_path: Path) -> Artifact:
    folder = tmp_path / "model"
    (folder / "test_data_set_0").mkdir(parents=True)
    (folder / "model.onnx").write_bytes(b"graph")
    (folder / "test_data_set_0" / "input_0.pb").write_bytes(b"tensor")
    case = Case(index=0, name="example", origin="example", why="the export ran on it")
    write_record(folder, "cases.json", CaseList(schema_version=1, cases=[case]))
    write_manifest(folder)
    return Artifact(folder)


class TestManifest:
    def test_has_every_file_but_itself(self, artifact: Artifact) -> None:
        entries = artifact.manifest()
        assert sorted(entries) == ["cases.json", "model.onnx", "test_data_set_0/input_0.pb"]
        assert entries["model.onnx"].sha256 == hashlib.sha256(b"graph").hexdigest()
        assert entries["model.onnx"].size == 5

    def test_digest_is_of_the_manifest(self, artifact: Artifact) -> None:
        assert artifact.digest() == hashlib.sha256((artifact.folder / "manifest.json").read_bytes()).hexdigest()

    def test_is_the_same_wherever_the_folder_lies(self, artifact: Artifact, tmp_path: Path) -> None:
        moved = tmp_path / "elsewhere"
        artifact.folder.rename(moved)
        before = Artifact(moved).digest()
        assert write_manifest(moved) == before
        assert changed_files(Artifact(moved)) == []

    @pytest.mark.parametrize(
        "text",
        ["", "[]", '{"a": 1}', '{"a": {"sha256": "0", "size": "1"}}', '{"a": {"sha256": "0"}}', '{"a": 1, "a": 2}'],
    )
    def test_a_broken_one_is_told(self, artifact: Artifact, text: str) -> None:
        (artifact.folder / "manifest.json").write_text(text)
        with pytest.raises(ArtifactError, match=r"manifest\.json"):
            artifact.manifest()

    def test_a_file_named_like_it_deeper_down_is_a_file_like_others(self, artifact: Artifact) -> None:
        (artifact.folder / "test_data_set_0" / "manifest.json").write_text("{}")
        assert changed_files(artifact) == ["test_data_set_0/manifest.json was added after the export"]
        write_manifest(artifact.folder)
        assert "test_data_set_0/manifest.json" in artifact.manifest()


class TestChangedFiles:
    def test_nothing_changed(self, artifact: Artifact) -> None:
        assert changed_files(artifact) == []

    def test_other_bytes_of_the_same_size(self, artifact: Artifact) -> None:
        artifact.model.write_bytes(b"grapH")
        assert changed_files(artifact) == ["model.onnx was changed after the export"]

    def test_missing_and_added(self, artifact: Artifact) -> None:
        artifact.model.unlink()
        (artifact.folder / "model.onnx.data").write_bytes(b"")
        assert changed_files(artifact) == ["model.onnx is missing", "model.onnx.data was added after the export"]

    def test_a_link_to_the_same_bytes(self, artifact: Artifact, tmp_path: Path) -> None:
        artifact.model.rename(tmp_path / "kept.onnx")
        (artifact.folder / "model.onnx").symlink_to(tmp_path / "kept.onnx")
        assert changed_files(artifact) == ["model.onnx became a symbolic link"]

    def test_a_linked_folder_of_the_same_bytes(self, artifact: Artifact, tmp_path: Path) -> None:
        (artifact.folder / "test_data_set_0").rename(tmp_path / "kept")
        (artifact.folder / "test_data_set_0").symlink_to(tmp_path / "kept")
        assert changed_files(artifact) != []

    def test_a_dangling_link(self, artifact: Artifact) -> None:
        (artifact.folder / "extra").symlink_to("nowhere")
        assert changed_files(artifact) == ["extra was added after the export"]

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes by name")
    def test_a_pipe_in_place_of_a_file(self, artifact: Artifact) -> None:
        artifact.model.unlink()
        os.mkfifo(artifact.model)
        assert changed_files(artifact) == ["model.onnx is no regular file any more"]

    def test_empty_folders_do_not_count(self, artifact: Artifact) -> None:
        (artifact.folder / "test_data_set_1").mkdir()
        assert changed_files(artifact) == []


class TestReading:
    def test_records(self, artifact: Artifact) -> None:
        assert [case.name for case in artifact.cases().cases] == ["example"]
        assert artifact.case_folder(0).is_dir()

    def test_a_missing_file_says_which_and_what_next(self, artifact: Artifact) -> None:
        with pytest.raises(ArtifactError, match=r"contract\.json is missing") as caught:
            artifact.contract()
        assert caught.value.where == str(artifact.folder)
        assert "Export the model again" in caught.value.hint

    def test_a_link_is_not_followed(self, artifact: Artifact, tmp_path: Path) -> None:
        (artifact.folder / "cases.json").rename(tmp_path / "kept.json")
        (artifact.folder / "cases.json").symlink_to(tmp_path / "kept.json")
        with pytest.raises(ArtifactError, match="symbolic link"):
            artifact.cases()

    @pytest.mark.parametrize("change", [{"cases": None}, {"more": 1}, {"schema_version": "1"}])
    def test_another_record_says_where_it_differs(self, artifact: Artifact, change: dict) -> None:
        path = artifact.folder / "cases.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
        with pytest.raises(ArtifactError, match=next(iter(change))):
            artifact.cases()

    def test_the_model_is_absolute_and_inside(self, artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(artifact.folder.parent)
        assert Artifact(Path("model")).model == artifact.folder.resolve() / "model.onnx"


def test_sha256_reads_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "big"
    path.write_bytes(b"x" * 3_000_001)
    assert sha256(path) == hashlib.sha256(b"x" * 3_000_001).hexdigest()
