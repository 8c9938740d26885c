"""The list of a model's variants, beside their folders. Standard library only.

It is a file among the artifact folders (``artifacts/<model>.variants.json``), not a folder: what looks for artifacts
there takes every folder for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onnx_ci.artifact import layout
from onnx_ci.artifact.layout import Artifact, ArtifactError
from onnx_ci.records import codec
from onnx_ci.records.variants import SCHEMA_VERSION, Variant, VariantList

SUFFIX = ".variants.json"
_LARGEST = 16 << 20
"""Bytes of a list; a thousand variants with a hundred inputs have less."""


def path_of(artifacts: Path, model: str) -> Path:
    """Where the list of a model lies."""
    return artifacts / f"{model}{SUFFIX}"


def lists_in(artifacts: Path) -> list[Path]:
    """Every list in a folder of artifacts, by name."""
    return sorted(path for path in artifacts.iterdir() if path.name.endswith(SUFFIX) and path.is_file())


def entry(artifact: Artifact) -> Variant:
    """What the list says of one whole artifact, manifest included, read from its contract.

    Raises:
        ArtifactError: The contract or the manifest can't be read, or no variant is named.
    """
    contract = artifact.contract()
    if contract.variant is None:
        raise ArtifactError("the contract names no variant", where=str(artifact.folder / layout.CONTRACT))
    return Variant(
        variant=contract.variant,
        folder=artifact.folder.name,
        artifact=artifact.digest(),
        contract=layout.sha256(artifact.folder / layout.CONTRACT),
        inputs={item.name: item.shape for item in contract.inputs},
    )


def write(artifacts: Path, model: str, found: Sequence[Variant]) -> Path:
    """Writes the list of a model's variants, and says where it lies."""
    path = path_of(artifacts, model)
    record = VariantList(schema_version=SCHEMA_VERSION, model=model, variants=list(found))
    path.write_text(codec.dumps(record), encoding="utf-8")
    return path


def read(path: Path) -> VariantList:
    """Reads a list; every folder in it is a plain name beside the file, and every variant stands once.

    Raises:
        ArtifactError: It is not there, or not what it should be.
    """
    if path.is_symlink() or not path.is_file():
        raise ArtifactError("the list of variants is missing", where=str(path), hint="Export the model again.")
    if path.stat().st_size > _LARGEST:
        raise ArtifactError(f"{path.stat().st_size} bytes are more than it may have", where=str(path))
    try:
        found = codec.loads(VariantList, path.read_bytes())
    except codec.RecordError as error:
        raise ArtifactError(str(error), where=str(path), hint="Was it written by another version?") from error
    problem = _problem(found)
    if problem:
        raise ArtifactError(problem, where=str(path), hint="Export the model again.")
    return found


def _problem(found: VariantList) -> str:
    if found.schema_version != SCHEMA_VERSION:
        return f"schema version {found.schema_version}, this onnx-ci reads {SCHEMA_VERSION}"
    if not found.variants:
        return "it has no variant"
    names = [one.variant for one in found.variants]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        return f"the variant {twice!r} stands twice"
    # From outside: a name that leads elsewhere would open another folder's file.
    away = next((one.folder for one in found.variants if not _is_plain(one.folder)), None)
    return f"the folder {away!r} is not a name beside it" if away is not None else ""


def _is_plain(name: str) -> bool:
    return name not in ("", ".", "..") and not set(name) & set("/\\:\0")
