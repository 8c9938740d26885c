"""Which run this is: what GitHub's runner says of the workflow, its event and its commit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnx_ci.report import read

RULES_URL = "https://github.com/org/onnx-ci/blob/v1/docs/rules.md"
_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~/-]*)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Which run a result belongs to. Ids only grow, so the larger (id, attempt) is the newer run.

    Attributes:
        sha: The commit that was judged: the pull request's own, not the merge that GitHub makes of it.
    """

    id: int = 0
    attempt: int = 0
    number: int = 0
    sha: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """What a report needs to know of its run; all empty outside GitHub.

    Attributes:
        config: Path of the config file in the repository: names the comment, and stands where a finding has no file.
        url: Of the run, where the whole report lies; empty where there is none.
    """

    config: str = "onnx-ci.toml"
    run: Run = Run()
    url: str = ""
    rules_url: str = RULES_URL


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """The event that started the workflow, as GitHub wrote it."""

    name: str
    payload: Mapping[str, Any]
    repository: str

    def get(self, *keys: str) -> Any:
        """A value inside the payload; None where there is none."""
        value: Any = self.payload
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value


def event(env: Mapping[str, str]) -> Event:
    """Reads the event from the runner's environment; an unreadable payload is an empty one."""
    payload: Any = {}
    if path := env.get("GITHUB_EVENT_PATH"):
        try:
            payload, _ = read.document(Path(path))
        except read.UnreadableError:
            payload = {}
    repository = env.get("GITHUB_REPOSITORY", "")
    return Event(
        name=env.get("GITHUB_EVENT_NAME", ""),
        payload=payload if isinstance(payload, dict) else {},
        repository=repository if _REPOSITORY.fullmatch(repository) else "",
    )


def context(env: Mapping[str, str], event: Event, *, config: str) -> Context:
    """Says which run is reported: for a `workflow_run` the one that triggered it, else this one."""
    if event.name == "workflow_run":
        run = Run(
            id=_integer(event.get("workflow_run", "id")),
            attempt=_integer(event.get("workflow_run", "run_attempt")),
            number=_integer(event.get("workflow_run", "run_number")),
            sha=_sha(event.get("workflow_run", "head_sha")),
        )
    else:
        run = Run(
            id=_integer(env.get("GITHUB_RUN_ID")),
            attempt=_integer(env.get("GITHUB_RUN_ATTEMPT")),
            number=_integer(env.get("GITHUB_RUN_NUMBER")),
            sha=_sha(event.get("pull_request", "head", "sha")) or _sha(env.get("GITHUB_SHA")),
        )
    server = env.get("GITHUB_SERVER_URL", "")
    linked = run.id and event.repository and _URL.fullmatch(server)
    url = f"{server.rstrip('/')}/{event.repository}/actions/runs/{run.id}" if linked else ""
    return Context(config=config, run=run, url=url)


def _integer(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return max(0, value)
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value) else 0


def _sha(value: Any) -> str:
    return value if isinstance(value, str) and _SHA.fullmatch(value) else ""
