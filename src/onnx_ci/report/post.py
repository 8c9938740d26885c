"""Writes the one comment of a pull request, and repeats what may be repeated, within bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from onnx_ci.report.comment import Comment, Create, Leave, Update, choose
from onnx_ci.report.context import Run
from onnx_ci.report.github import GitHubError
from onnx_ci.report.markdown import COMMENT_LIMIT

ATTEMPTS = 6
LONGEST_WAIT = 180.0
"""Seconds that all waits of one comment may take together: a job of a runner is paid for."""

PERMISSION = "Give the job `permissions: pull-requests: write`. Runs for forks never have it: see docs/security.md."


class Comments(Protocol):
    """What is needed of GitHub."""

    def comments(self, number: int) -> Sequence[Comment]:
        """All comments of a pull request."""
        ...

    def create(self, number: int, body: str) -> int:
        """Writes a comment and gives back its id."""
        ...

    def update(self, id: int, body: str) -> int:
        """Writes over a comment and gives back its id."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Posted:
    """The comment is there. `newer` where a newer run had written it already, so that this one left it."""

    id: int
    newer: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class NotPosted:
    """The comment could not be written: why, and what to do."""

    why: str
    hint: str = ""


def upsert(
    api: Comments,
    number: int,
    *,
    marker: str,
    author: str,
    run: Run,
    render: Callable[[int], str],
    sleep: Callable[[float], None],
) -> Posted | NotPosted:
    """Creates the comment or writes over it.

    After anything uncertain (an answer that broke off, a 5xx) it lists the comments anew: what got through is found,
    so that no second comment comes of it.

    Args:
        api: GitHub.
        number: Of the pull request.
        marker: As `comment.marker` gives it.
        author: Whose comment it is.
        run: Ours; a newer one's comment is left alone.
        render: The body in at most so many characters.
        sleep: Waits; handed in for tests.
    """
    limit, waited = COMMENT_LIMIT, 0.0
    for attempt in range(1, ATTEMPTS + 1):
        step = "list"
        try:
            decision = choose(api.comments(number), marker, author, run)
            step = "write"
            match decision:
                case Leave(id=id):
                    return Posted(id=id, newer=True)
                case Update(id=id):
                    return Posted(id=api.update(id, render(limit)))
                case Create():
                    return Posted(id=api.create(number, render(limit)))
        except GitHubError as error:
            if error.status == 422 and "too long" in str(error) and limit > 1000:
                limit //= 2
                continue
            deleted = step == "write" and error.status == 404  # between our listing and our writing
            wait = error.wait if error.wait is not None else float(2 ** (attempt - 1))
            last = attempt == ATTEMPTS
            if not (error.again or deleted) or last or waited + wait > LONGEST_WAIT:
                return _given_up(error, wait if error.again and not last else 0.0)
            waited += wait
            sleep(wait)
    return NotPosted(why=f"still too long at {limit} characters")


def _given_up(error: GitHubError, wait: float) -> NotPosted:
    if error.status == 403 and not error.again:
        return NotPosted(why=str(error), hint=PERMISSION)
    if error.status in (401, 404) and not error.again:
        return NotPosted(why=str(error), hint="Is the token this repository's, and the pull request still there?")
    patience = f"; GitHub asks to wait {wait:.0f} s" if wait > LONGEST_WAIT else ""
    return NotPosted(why=f"{error}{patience}", hint="The table is in the step summary.")
