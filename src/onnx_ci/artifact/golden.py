"""Goldens as files: ``golden/<model>[@<variant>]/test_data_set_<n>/`` and ``golden.json``. Standard library only.

Only `accept` writes them; a run compares and never touches them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from onnx_ci.artifact.layout import Artifact, ArtifactError, changed_files
from onnx_ci.records import codec
from onnx_ci.records.base import record
from onnx_ci.records.cases import Case, OpenOrder
from onnx_ci.records.changes import changes, file_changes
from onnx_ci.records.contract import Contract, TensorContract
from onnx_ci.records.result import Finding, finding

SCHEMA_VERSION = 1
"""Version of golden.json. 1: the first."""

RECORD = "golden.json"
_CASE_FOLDER = re.compile(r"test_data_set_\d+")
_VERSIONS = ("torch", "onnx", "onnxruntime", "onnxruntime-gpu", "onnxscript", "numpy")


@record
class GoldenCase:
    """One stored case: its folder, and how far PyTorch itself was from the oracle when it was accepted.

    Attributes:
        index: The n of its folder.
        e_torch: By output; None without an oracle, or for exact dtypes.
        nondeterministic: Outputs that differed when the eager module was called twice: not compared.
        orders: Outputs along which no order is promised.
    """

    index: int
    name: str
    dims: dict[str, int] = field(default_factory=dict)
    e_torch: dict[str, float | None] = field(default_factory=dict)
    nondeterministic: list[str] = field(default_factory=list)
    orders: dict[str, OpenOrder] = field(default_factory=dict)


@record
class Golden:
    """What was accepted, for which contract, and where it was made.

    Attributes:
        contract_digest: sha256 of `contract`, in the form `codec.dumps` writes.
        contract: What of the contract the outputs depend on (`promise`), so that a change can be named.
        artifact: Digest of the artifact that the outputs were taken from.
        machine: Processor, cores and platform of the machine that computed them.
        made_under: Construction settings and the digests of preprocessing files (`conditions`). The outputs can be
            compared all the same where these changed; None where an older version did not write them down.
    """

    schema_version: int
    contract_digest: str
    contract: dict[str, Any]
    artifact: str
    versions: dict[str, str]
    machine: dict[str, str]
    cases: list[GoldenCase]
    made_under: dict[str, dict[str, Any]] | None = None


def read(folder: Path) -> Golden:
    """Reads the record of a golden.

    Raises:
        ArtifactError: It is missing, of another version, or not what it should be.
    """
    path = folder / RECORD
    hint = "Accept the goldens again (onnx-ci golden accept), and review the difference."
    if path.is_symlink() or not path.is_file():
        raise ArtifactError(f"{RECORD} is missing", where=str(folder), hint=hint)
    text = path.read_bytes()
    try:
        version = json.loads(text)["schema_version"]
    except (ValueError, TypeError, KeyError) as error:
        raise ArtifactError(f"not a golden's record: {error}", where=str(path), hint=hint) from error
    if version != SCHEMA_VERSION:
        message = f"schema version {version}, this onnx-ci reads {SCHEMA_VERSION}"
        raise ArtifactError(message, where=str(path), hint=hint)
    try:
        return codec.loads(Golden, text)
    except codec.RecordError as error:
        raise ArtifactError(str(error), where=str(path), hint=hint) from error


def accept(artifact_folder: Path, golden_folder: Path) -> list[Path]:
    """Stores the user's cases and the example of an artifact as the golden of its model.

    The new golden is written beside the old one and takes its place by renaming, so that a full disk or a stopped
    process leaves the old one whole. Files that are not a golden's own (a README, say) stay.

    Returns:
        What lies there now, in order.

    Raises:
        ArtifactError: The artifact is not as it was exported, or holds no case to keep.
    """
    artifact = Artifact(artifact_folder)
    changed = changed_files(artifact)
    if changed:
        raise ArtifactError(changed[0], where=str(artifact_folder), hint="Export the model again, then accept.")
    kept = [case for case in artifact.cases().cases if case.origin in ("user", "example") and not case.refused]
    if not kept:
        raise ArtifactError("it holds no case to keep as golden", where=str(artifact_folder), hint="Export again.")
    golden_folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{golden_folder.name}.", dir=golden_folder.parent) as temporary:
        fresh = Path(temporary) / "new"
        fresh.mkdir()
        written = [path for index, case in enumerate(kept) for path in _copy_case(artifact, case, fresh, index)]
        (fresh / RECORD).write_text(codec.dumps(_record(artifact, kept)), encoding="utf-8")
        written.append(fresh / RECORD)
        if golden_folder.is_dir():
            _keep_foreign(golden_folder, fresh)
            os.replace(golden_folder, Path(temporary) / "old")
        os.replace(fresh, golden_folder)
        return [golden_folder / path.relative_to(fresh) for path in written]


def promise(contract: Contract) -> dict[str, Any]:
    """What of a contract the golden outputs depend on.

    Left out is what another machine or version may write differently for the same model: captured ranges of dims
    without a declared one, and the wording of the output dims' expressions.
    """
    dims = {axis for item in contract.inputs for axis in item.shape or [] if isinstance(axis, str)}
    return {
        "contract_version": contract.contract_version,
        "inputs": [_tensor(item, dims) for item in contract.inputs],
        "outputs": [_tensor(item, dims) for item in contract.outputs],
        "dims": {
            name: {"min": dim.min, "max": dim.max, "multiple_of": dim.multiple_of}
            for name, dim in contract.dims.items()
            if dim.declared
        },
        "frozen": codec.encode(contract.frozen),
    }


def conditions(contract: Contract) -> dict[str, dict[str, Any]]:
    """What the golden outputs were made under besides, and may well survive."""
    return {"kwargs": codec.encode(contract.kwargs), "preprocessing": dict(contract.preprocessing)}


def moved(accepted: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Says which conditions are others now, a part of a sentence each."""
    settings = changes(accepted.get("kwargs", {}), now.get("kwargs", {}), "kwargs.")
    return settings + file_changes(accepted.get("preprocessing", {}), now.get("preprocessing", {}))


def digest(promised: dict[str, Any]) -> str:
    """The contract digest: sha256 of the promise as JSON."""
    return hashlib.sha256(codec.dumps(promised).encode()).hexdigest()


def names(promised: dict[str, Any], side: str) -> list[str]:
    """The names of a promise's tensors, in order.

    Args:
        promised: By `promise`, or as a golden's record has it: from outside, so a part that is not there is no name.
        side: "inputs" or "outputs".
    """
    listed = promised.get(side)
    return [str(item.get("name")) for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def orphans(golden_dir: Path, labels: Collection[str]) -> list[str]:
    """Names of goldens whose model is not among these.

    Args:
        golden_dir: The folder of all goldens.
        labels: ``model[@variant]`` of models.
    """
    if not golden_dir.is_dir():
        return []
    return sorted(
        entry.name for entry in golden_dir.iterdir() if (entry / RECORD).is_file() and entry.name not in labels
    )


def orphan_findings(golden_dir: Path, labels: Collection[str]) -> list[Finding]:
    """Warns of each golden whose model the config no longer has.

    Args:
        golden_dir: The folder of all goldens.
        labels: ``model[@variant]`` of every model in the config, whatever a filter selects.
    """
    return [
        finding(
            "golden.orphaned",
            "warn",
            name,
            f"the golden {name} belongs to no model of the config",
            hint="Rename the folder if the model was renamed; else delete it.",
        )
        for name in orphans(golden_dir, labels)
    ]


def _copy_case(artifact: Artifact, case: Case, fresh: Path, index: int) -> list[Path]:
    source, target = artifact.case_folder(case.index), fresh / f"test_data_set_{index}"
    target.mkdir()
    files = sorted(path for path in source.iterdir() if re.fullmatch(r"(input|output)_\d+\.pb", path.name))
    return [Path(shutil.copyfile(path, target / path.name)) for path in files]


def _keep_foreign(golden_folder: Path, fresh: Path) -> None:
    for entry in golden_folder.iterdir():
        if entry.name == RECORD or _CASE_FOLDER.fullmatch(entry.name):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.copytree(entry, fresh / entry.name, symlinks=True)
        else:
            shutil.copy2(entry, fresh / entry.name, follow_symlinks=False)


def _record(artifact: Artifact, kept: list[Case]) -> Golden:
    contract = artifact.contract()
    made, promised = contract.environment, promise(contract)
    return Golden(
        schema_version=SCHEMA_VERSION,
        contract_digest=digest(promised),
        contract=promised,
        artifact=artifact.digest(),
        versions={name: made.packages[name] for name in _VERSIONS if name in made.packages} | {"python": made.python},
        machine={"cpu": made.cpu, "cores": str(made.cores), "platform": made.platform},
        cases=[
            GoldenCase(
                index=index,
                name=case.name,
                dims=case.dims,
                e_torch={output.name: output.e_torch for output in case.outputs},
                nondeterministic=case.nondeterministic,
                orders=case.orders,
            )
            for index, case in enumerate(kept)
        ],
        made_under=conditions(contract),
    )


def _tensor(item: TensorContract, dims: set[str]) -> dict[str, Any]:
    shape = (
        None if item.shape is None else [axis if isinstance(axis, int) or axis in dims else "*" for axis in item.shape]
    )
    return {"name": item.name, "dtype": item.dtype, "shape": shape}
