"""Which comment is ours, and whether to write it: decided here, done in `report.github`. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from onnx_ci.report.context import Run

AUTHOR = "github-actions[bot]"
"""Who writes with the workflow's own token. (`GET /user` would tell, but such a token may not ask it.)"""

_RUN = re.compile(r"<!-- onnx-ci-run id=(\d{1,18}) attempt=(\d{1,18}) number=(\d{1,18}) sha=([0-9a-f]{0,64}) -->")


@dataclass(frozen=True, kw_only=True, slots=True)
class Comment:
    """A comment as GitHub gave it."""

    id: int
    author: str
    body: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Create:
    """There is none of ours yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """Ours is this one."""

    id: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Leave:
    """Ours is this one, and a newer run wrote it."""

    id: int
    by: Run


def marker(key: str) -> str:
    """The hidden text by which a comment is found again: one for each config file of a repository."""
    plain = re.sub(r"[^A-Za-z0-9._/]+", "-", key)[:80]
    digest = "" if plain == key else "-" + hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:8]
    return f"<!-- onnx-ci:{plain.strip('-')}{digest} -->"


def signature(key: str, run: Run) -> str:
    """The last line of a comment: the marker, and which run wrote it, for machines."""
    stamp = f"<!-- onnx-ci-run id={run.id} attempt={run.attempt} number={run.number} sha={run.sha} -->"
    return marker(key) + stamp


def choose(comments: Iterable[Comment], marker: str, author: str, run: Run) -> Create | Update | Leave:
    """Says what to do with the comments of a pull request.

    Ours is the oldest whose author is `author` and whose last line starts with `marker`; a quotation of it, or the
    marker under another name, is somebody else's. A run that is older than the comment leaves it alone.
    """
    ours = [one for one in comments if one.author == author and _last_line(one.body).startswith(marker)]
    if not ours:
        return Create()
    oldest = min(ours, key=lambda one: one.id)
    by = written_by(oldest.body)
    return Leave(id=oldest.id, by=by) if (by.id, by.attempt) > (run.id, run.attempt) else Update(id=oldest.id)


def written_by(body: str) -> Run:
    """Which run wrote a comment; all zero where it does not say."""
    found = _RUN.search(_last_line(body))
    if not found:
        return Run()
    return Run(id=int(found[1]), attempt=int(found[2]), number=int(found[3]), sha=found[4])


def _last_line(body: str) -> str:
    return body.rstrip().rpartition("\n")[2].strip()
