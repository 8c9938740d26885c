"""Which pull request a run belongs to: GitHub's word for it, never an artifact's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnx_ci.report.context import Event


@dataclass(frozen=True, kw_only=True, slots=True)
class Pull:
    """An open pull request by its number, its head and its base."""

    number: int
    head_sha: str
    head_repository: str
    base_repository: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NoPull:
    """There is no pull request to comment on.

    Attributes:
        why: In a sentence.
        wanted: Whether somebody would expect one, so that its absence is worth a warning.
    """

    why: str
    wanted: bool = True


def find(event: Event, lookup: Callable[[str], Sequence[Pull]]) -> int | NoPull:
    """Says on which pull request to comment.

    Args:
        event: The event that started this workflow.
        lookup: Asks GitHub for open pull requests of a head, given as "owner:branch".
    """
    if not event.repository:
        return NoPull(why="no pull request: GITHUB_REPOSITORY is not set")
    if event.name == "pull_request":
        number = event.get("pull_request", "number")
        return number if _is_number(number) else NoPull(why="the pull_request event has no number")
    if event.name == "workflow_run":
        return _of_run(event, lookup)
    if event.name == "pull_request_target":
        return NoPull(why="no comment under pull_request_target: use a workflow on workflow_run (docs/security.md)")
    return NoPull(why=f"no comment: the event {event.name or '(none)'} is no pull request", wanted=False)


def _of_run(event: Event, lookup: Callable[[str], Sequence[Pull]]) -> int | NoPull:
    if event.get("workflow_run", "event") != "pull_request":
        return NoPull(why="no comment: the run was not started by a pull request", wanted=False)
    keys = [("head_sha",), ("head_branch",), ("head_repository", "full_name"), ("head_repository", "owner", "login")]
    sha, branch, repository, owner = (event.get("workflow_run", *key) for key in keys)
    if not (
        isinstance(sha, str)
        and isinstance(branch, str)
        and isinstance(repository, str)
        and isinstance(owner, str)
        and sha
        and branch
    ):
        return NoPull(why="the workflow_run event does not say which head it ran on")
    # two forks may have a branch of one name, and a branch may have moved on: the commit decides
    ours = [
        pull
        for pull in lookup(f"{owner}:{branch}")
        if pull.head_sha == sha
        and pull.head_repository.lower() == repository.lower()
        and pull.base_repository.lower() == event.repository.lower()
    ]
    if len(ours) != 1:
        found = "none" if not ours else f"{len(ours)}"
        return NoPull(
            why=f"no comment: of the open pull requests, {found} has {sha[:10]} as its head", wanted=bool(ours)
        )
    return ours[0].number


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
