"""Whether a stored artifact was exported under the config as it is now."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onnx_ci.artifact.layout import Artifact
from onnx_ci.config.load import load
from onnx_ci.config.problems import ConfigError
from onnx_ci.errors import OnnxCiError, UsageError
from onnx_ci.records import codec
from onnx_ci.records.changes import changes, file_changes
from onnx_ci.records.model import Config, JobSpec, ModelSpec
from onnx_ci.records.result import Finding, finding, label

_NO_MATTER = {"time_limit", "memory_limit", "declared_in", "declared_at", "variants"}
"""What neither shaped the artifact nor judges it: limits, places in the config, and the model's other variants."""
_SHOWN = 4


def judge(config: Path, artifacts: Sequence[tuple[Artifact, JobSpec]]) -> dict[str, list[Finding]]:
    """What is to be said of each artifact whose model is in the config, by its label.

    Raises:
        UsageError: There is no such config.
    """
    if not config.is_file():
        raise UsageError("no such file", where=str(config))
    names = [label(job.model.name, job.model.variant) for _, job in artifacts]
    try:
        now = load(config, cwd=Path.cwd())
    except ConfigError as error:
        # A runner that only judges may well lack the samples and sources that the config names.
        first = error.problems[0].message if error.problems else str(error)
        message = f"not judged, since {error.file} can't be used here: {first}"
        return {name: [finding("contract.stale", "skip", "", message)] for name in names}
    return {name: _judge(artifact, job.model, now) for name, (artifact, job) in zip(names, artifacts, strict=True)}


def _judge(artifact: Artifact, then: ModelSpec, config: Config) -> list[Finding]:
    now = next((one for one in config.models if (one.name, one.variant) == (then.name, then.variant)), None)
    if now is None:
        return []
    try:
        digests = artifact.contract().preprocessing
        files = {name: _digest(Path(config.root) / name, digests.get(name, "")) for name in now.preprocessing}
    except OnnxCiError:
        return []  # a contract that can't be read is for `verify` to tell
    except OSError as error:
        return [finding("contract.stale", "skip", "", f"not judged, since {error.filename} can't be read")]
    changed = changes(_settings(then), _settings(now))
    changed += file_changes(digests, files) if then.preprocessing == now.preprocessing else []
    if not changed:
        return [finding("contract.stale", "pass", "", f"it was exported under {config.path} as that is now")]
    more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
    return [
        finding(
            "contract.stale", "fail", "",
            f"the artifact was exported under another {config.path}: {'; '.join(changed[:_SHOWN])}{more}",
            hint="Export the model again, or judge it with the config that it was exported under.",
            file=now.declared_in or None,
            line=now.declared_at,
            data={"changes": changed[:50]},
        )
    ]  # fmt: skip


def _digest(path: Path, exported: str) -> str:
    """The file's digest; the exported one where only line ends differ, as a checkout on Windows makes them."""
    content = path.read_bytes()
    unix = content.replace(b"\r\n", b"\n")
    alike = {hashlib.sha256(one).hexdigest() for one in (content, unix, unix.replace(b"\n", b"\r\n"))}
    return exported if exported in alike else hashlib.sha256(content).hexdigest()


def _settings(spec: ModelSpec) -> dict[str, Any]:
    return {key: value for key, value in codec.encode(spec).items() if key not in _NO_MATTER}
