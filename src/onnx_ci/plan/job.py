"""The job `plan`: config in, ``plan.json`` and the job matrices out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnx_ci import commits
from onnx_ci.errors import OnnxCiError
from onnx_ci.plan import matrix
from onnx_ci.plan.matrix import Matrices, make
from onnx_ci.records import codec
from onnx_ci.records.model import Config
from onnx_ci.records.report import Plan

__all__ = ["head_sha", "is_fork", "make", "outputs", "read_event", "run"]

PLAN = "plan.json"
MATRIX = "matrix.json"


def run(
    config: Config,
    *,
    out: Path,
    environ: Mapping[str, str],
    models: Sequence[str] = (),
    targets: Sequence[str] = (),
    shards: int = 1,
    root: Path | None = None,
) -> tuple[Plan, Matrices]:
    """Plans the run, writes ``plan.json`` and ``matrix.json`` into `out`, and says the matrices to GitHub.

    Args:
        config: The resolved config.
        out: Folder to write to; made when missing.
        environ: The process's environment: GITHUB_EVENT_PATH tells a fork and the head commit, GITHUB_OUTPUT takes
            the matrices for the jobs that need them.
        models: Patterns as `select.models` takes them.
        targets: Likewise.
        shards: How many exports run at once.
        root: A folder in the repository, which knows the commit that a pull request is merged into.

    Raises:
        NothingMatchedError: A filter matched nothing.
        UsageError: `shards` can't be.
        OnnxCiError: The event file can't be read.
    """
    event = read_event(environ)
    plan = make(
        config,
        models=models,
        targets=targets,
        fork=is_fork(event, environ.get("GITHUB_REPOSITORY", "")),
        head_sha=head_sha(event) or environ.get("GITHUB_SHA", ""),
        base_sha=commits.base(event, environ.get("GITHUB_SHA", "") if root else "", root or out),
    )
    found = matrix.matrices(config, plan, shards=shards)
    out.mkdir(parents=True, exist_ok=True)
    (out / PLAN).write_text(codec.dumps(plan), encoding="utf-8")
    (out / MATRIX).write_text(codec.dumps(found), encoding="utf-8")
    if path := environ.get("GITHUB_OUTPUT"):
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.writelines(f"{name}={value}\n" for name, value in outputs(plan, found).items())
    return plan, found


def outputs(plan: Plan, found: Matrices) -> dict[str, str]:
    """The base's commit, and the matrices, a line of JSON each; empty where one has no jobs, which GitHub refuses."""
    return {
        "base-sha": plan.base_sha,
        "export-matrix": _include(found.export),
        "hosted-matrix": _include(found.hosted),
        "self-hosted-matrix": _include(found.self_hosted),
    }


def read_event(environ: Mapping[str, str]) -> dict[str, Any]:
    """The payload of the event that started the workflow; empty outside GitHub.

    Raises:
        OnnxCiError: It can't be read: whether it is a fork's can't be told then.
    """
    path = environ.get("GITHUB_EVENT_PATH")
    if not path:
        return {}
    try:
        event = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise OnnxCiError(f"the event's payload can't be read: {error}", where=path) from error
    return event if isinstance(event, dict) else {}


def is_fork(event: Mapping[str, Any], repository: str) -> bool:
    """Whether the event is a pull request of another repository; one whose repository is gone counts as such."""
    pull = event.get("pull_request")
    if not isinstance(pull, dict):
        return False
    try:
        return bool(pull["head"]["repo"]["full_name"] != repository)
    except (KeyError, TypeError):
        return True


def head_sha(event: Mapping[str, Any]) -> str:
    """The pull request's own last commit (GITHUB_SHA is a merge that nobody wrote); "" for other events."""
    try:
        return str(event["pull_request"]["head"]["sha"])
    except (KeyError, TypeError):
        return ""


def _include(entries: Sequence[object]) -> str:
    include = [codec.encode(entry) for entry in entries]
    return json.dumps({"include": include}, separators=(",", ":"), allow_nan=False) if include else ""
