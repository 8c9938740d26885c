"""The merge of all results with one status: ``report.json``; and the plan that says which were expected."""

from __future__ import annotations

from dataclasses import field

from onnx_ci.records.base import record
from onnx_ci.records.result import Result, Status

SCHEMA_VERSION = 1
"""Version of plans and reports. 1: the first."""

PROVENANCE = "provenance.json"
"""Where a folder of artifacts says which commit it is of."""


@record
class Leg:
    """One expected result: a model on a target ("export" is one too).

    Attributes:
        not_run: Why it is off in this run, so that no result is expected of it; shown in its row. Empty: it is on.
    """

    model: str
    variant: str | None
    target: str
    required: bool
    runs_on: list[str] = field(default_factory=list)
    not_run: str = ""


@record
class Plan:
    """All that a run is expected to give, so that what is missing can be seen.

    Attributes:
        config: Path of the config file in the repository.
        head_sha: The commit that was planned, where known.
        base_sha: The commit that a pull request is merged into, whose artifacts are its base.
    """

    schema_version: int
    config: str
    legs: list[Leg]
    head_sha: str = ""
    base_sha: str = ""


@record
class Provenance:
    """Where a folder of artifacts comes from; lies beside them, so that a base can say of which commit it is.

    Attributes:
        commit: That was exported.
        run: Id of the run that did it.
    """

    schema_version: int
    commit: str
    run: str = ""


@record
class VersionChange:
    """A package whose version differs between base and head; None: not there."""

    package: str
    base: str | None
    head: str | None


@record
class Report:
    """The merged verdict.

    Attributes:
        exit_code: 0 pass, 1 a promise is broken, 3 could not tell.
        missing: Expected legs that have no result.
        problems: Why it could not be told, a sentence each: files that are no results, two results of one leg, …
        notes: What to know besides, a sentence each; never changes the exit code.
        versions: What changed against the base; empty without a base.
        changed: Labels of models whose versions or contract changed against the base.
        new: Labels of models that the base lacks.
        base: Whether a base was given.
        base_commit: Of which commit it is; empty where that is not known.
    """

    schema_version: int
    status: Status
    exit_code: int
    results: list[Result]
    missing: list[Leg] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    versions: list[VersionChange] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    base: bool = False
    base_commit: str = ""
