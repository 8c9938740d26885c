"""The artifacts that a command is about; a name that fits none of them is an error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from onnx_ci.artifact import layout, variants
from onnx_ci.artifact.layout import Artifact, ArtifactError
from onnx_ci.errors import NothingMatchedError
from onnx_ci.records import codec
from onnx_ci.records.model import Config, JobSpec
from onnx_ci.records.report import PROVENANCE, SCHEMA_VERSION, Provenance
from onnx_ci.records.result import label

_JOB = TypeAdapter(JobSpec)


def find_artifacts(folder: Path, models: Sequence[str]) -> list[tuple[Artifact, JobSpec]]:
    """The artifacts in a folder with the config each was exported under, of all models or of those named.

    Raises:
        NothingMatchedError: There is none.
        ArtifactError: One can't be read.
    """
    found = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if not path.is_dir() or path.name.startswith("."):
            continue
        if models and path.name not in models and path.name.partition("@")[0] not in models:
            continue
        try:
            found.append((Artifact(path), _JOB.validate_json((path / "config.json").read_bytes())))
        except (OSError, ValidationError) as error:
            raise ArtifactError(
                f"config.json can't be read: {error}", where=str(path), hint="Export the model again."
            ) from error
    if not found:
        raise NothingMatchedError(
            f"no artifact {'of ' + ', '.join(models) + ' ' if models else ''}in {folder}",
            hint="Run `onnx-ci export` first, or name the folder with --artifacts.",
        )
    return found


def count_legs(artifacts: Sequence[tuple[Artifact, JobSpec]], targets: Sequence[str]) -> int:
    """How many legs there are.

    Raises:
        NothingMatchedError: No target of that name.
    """
    known = {target.name: target for _, job in artifacts for target in job.targets}
    unknown = [name for name in targets if name not in known]
    if unknown:
        raise NothingMatchedError(f"no target {', '.join(unknown)}", hint=f"There are: {', '.join(known)}.")
    return sum(len([t for t in job.targets if not targets or t.name in targets]) for _, job in artifacts)


def write_provenance(folder: Path, commit: str, run: str) -> None:
    """Says beside the artifacts which commit and run they are of, so that a later run knows what its base is."""
    if not folder.is_dir():
        return
    if not commit:
        (folder / PROVENANCE).unlink(missing_ok=True)
        return
    made = Provenance(schema_version=SCHEMA_VERSION, commit=commit, run=run)
    (folder / PROVENANCE).write_text(codec.dumps(made), encoding="utf-8")


def list_variants(config: Config, folder: Path) -> None:
    """Writes the list of each model's variants anew, from the artifacts that lie there.

    Listed are those that the config has: what an earlier config left behind in the folder is none of them.

    Raises:
        ArtifactError: A contract can't be read.
    """
    names = dict.fromkeys(model.name for model in config.models)
    for name in names if folder.is_dir() else ():
        found = [
            variants.entry(artifact)
            for model in config.models
            if model.name == name and model.variant
            for artifact in [Artifact(folder / label(name, model.variant))]
            if (artifact.folder / layout.MANIFEST).is_file()
        ]
        if found:
            variants.write(folder, name, found)
        else:
            variants.path_of(folder, name).unlink(missing_ok=True)
