"""The artifact folder by its file names, its manifest, and its digest. Standard library only."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from onnx_ci.errors import OnnxCiError
from onnx_ci.records import codec
from onnx_ci.records.cases import CaseList
from onnx_ci.records.contract import Contract
from onnx_ci.records.model import JobSpec
from onnx_ci.records.source_map import SourceMap

MODEL = "model.onnx"
DATA = "model.onnx.data"
CONTRACT = "contract.json"
CONFIG = "config.json"
CASES = "cases.json"
SOURCE_MAP = "source_map.json"
MANIFEST = "manifest.json"
_LARGEST = 256 << 20
"""Bytes of a JSON file; a source map of a hundred thousand values has a tenth of it."""
T = TypeVar("T")


class ArtifactError(OnnxCiError):
    """An artifact folder that can't be read: not there, or a file in it is not what it should be."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of the manifest by digest and size."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Artifact:
    """The exported folder of one model, for reading."""

    folder: Path

    @property
    def model(self) -> Path:
        """The file that ships, as an absolute path (ONNX Runtime resolves external data against it).

        A link in its place is not followed: it is told by `safety.external_data_problems`, not opened.
        """
        return self.folder.resolve() / MODEL

    def contract(self) -> Contract:
        """Reads what is promised."""
        return self._read(CONTRACT, Contract)

    def job(self) -> JobSpec:
        """Reads the resolved config under which it was exported."""
        return self._read(CONFIG, JobSpec)

    def cases(self) -> CaseList:
        """Reads the list of cases."""
        return self._read(CASES, CaseList)

    def source_map(self) -> SourceMap:
        """Reads where each value came from."""
        return self._read(SOURCE_MAP, SourceMap)

    def digest(self) -> str:
        """The artifact's digest: the sha256 of its manifest."""
        return sha256(self._path(MANIFEST))

    def manifest(self) -> dict[str, FileEntry]:
        """Reads digest and size of every file but the manifest itself, by path inside the folder."""
        return self._read(MANIFEST, dict[str, FileEntry])

    def case_folder(self, index: int) -> Path:
        """The folder of a case, in the layout of onnx's own test runners."""
        return self.folder / f"test_data_set_{index}"

    def _path(self, name: str) -> Path:
        path = self.folder / name
        if path.is_symlink() or not path.is_file():
            raise ArtifactError(
                f"{name} is missing" if not path.is_symlink() else f"{name} is a symbolic link",
                where=str(self.folder),
                hint="Export the model again, and upload the whole folder.",
            )
        return path

    def _read(self, name: str, cls: type[T]) -> T:
        path = self._path(name)
        if path.stat().st_size > _LARGEST:
            raise ArtifactError(f"{path.stat().st_size} bytes are more than it may have", where=str(path))
        try:
            return codec.loads(cls, path.read_bytes())
        except codec.RecordError as error:
            raise ArtifactError(str(error), where=str(path), hint="Was it written by another version?") from error


def write_record(folder: Path, name: str, record: object) -> None:
    """Writes one of the folder's JSON files."""
    (folder / name).write_text(codec.dumps(record), encoding="utf-8")


def write_manifest(folder: Path) -> str:
    """Writes digest and size of every file in the folder, and gives back the artifact's digest."""
    entries = {
        path.relative_to(folder).as_posix(): {"sha256": sha256(path), "size": path.stat().st_size}
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / MANIFEST
    }
    write_record(folder, MANIFEST, entries)
    return sha256(folder / MANIFEST)


def changed_files(artifact: Artifact, names: Collection[str] | None = None) -> list[str]:
    """Says of each file that is not what the manifest says, in a sentence; empty when all are.

    Args:
        artifact: The folder.
        names: Only these files, where no other is read; all when left out.
    """
    expected = {name: entry for name, entry in artifact.manifest().items() if names is None or name in names}
    present = {
        path.relative_to(artifact.folder).as_posix(): path
        for path in artifact.folder.rglob("*")
        if (path.is_symlink() or not path.is_dir()) and path != artifact.folder / MANIFEST
    }
    if names is not None:
        present = {name: path for name, path in present.items() if name in names}
    problems = [f"{name} is missing" for name in sorted(expected.keys() - present.keys())]
    problems += [f"{name} was added after the export" for name in sorted(present.keys() - expected.keys())]
    for name in sorted(expected.keys() & present.keys()):
        if present[name].is_symlink():
            problems.append(f"{name} became a symbolic link")
        elif not present[name].is_file():
            problems.append(f"{name} is no regular file any more")
        elif present[name].stat().st_size != expected[name].size or sha256(present[name]) != expected[name].sha256:
            problems.append(f"{name} was changed after the export")
    return problems


def sha256(path: Path) -> str:
    """Digest of a file in hexadecimal, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _sha256(stream)


def _sha256(stream: object) -> str:  # Python 3.10 has no file_digest
    digest = hashlib.sha256()
    while chunk := stream.read(1 << 20):  # type: ignore[attr-defined] # a binary stream
        digest.update(chunk)
    return digest.hexdigest()
