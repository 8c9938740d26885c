"""The plan and its job matrices: pure, from the resolved config to what GitHub spreads over runners."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from onnx_ci.config import select
from onnx_ci.errors import UsageError
from onnx_ci.records.base import record
from onnx_ci.records.model import CPU, Config, ModelSpec, TargetSpec
from onnx_ci.records.report import SCHEMA_VERSION, Leg, Plan
from onnx_ci.records.result import EXPORT_TARGET, label

MATRIX_LIMIT = 256
"""Jobs that one matrix may have (docs.github.com, "Usage limits")."""

NOT_ON_FORKS = "not run on forks (self-hosted runner)"
"""Why a leg is off; shown in its row."""

_HOSTED = re.compile(r"(ubuntu|windows|macos)-(latest|slim|\d+(\.\d+)?)(-(arm|intel|large|xlarge|vs\d+-\w+))?")


@record
class ExportEntry:
    """One job of the export matrix. `models` has a label a line, as the action's input takes it."""

    shard: str
    models: str


@record
class VerifyEntry:
    """One job of a verify matrix: a target on one runner, for the models of one shard.

    Attributes:
        gpu: Whether the provider needs more than the plain onnxruntime package.
    """

    target: str
    shard: str
    models: str
    provider: str
    runs_on: list[str]
    required: bool
    gpu: bool


@record
class Matrices:
    """The three matrices. A job's condition sees no matrix, so hosted and self-hosted legs are two jobs."""

    export: list[ExportEntry]
    hosted: list[VerifyEntry]
    self_hosted: list[VerifyEntry] = field(default_factory=list)


def make(
    config: Config,
    *,
    models: Sequence[str] = (),
    targets: Sequence[str] = (),
    fork: bool = False,
    head_sha: str = "",
    base_sha: str = "",
) -> Plan:
    """Lists every result that the run is expected to give: per model one export, and one for each target.

    Args:
        config: The resolved config.
        models: Patterns as `select.models` takes them.
        targets: Likewise.
        fork: The run is for a pull request from a fork; legs on self-hosted runners are off then.
        head_sha: The commit that was planned, where known.
        base_sha: The commit whose artifacts it is compared with, where known.

    Raises:
        NothingMatchedError: A filter matched nothing.
    """
    chosen = select.targets(config, targets)
    legs: list[Leg] = []
    for model in select.models(config, models):
        legs.append(Leg(model=model.name, variant=model.variant, target=EXPORT_TARGET, required=True))
        legs += [_leg(model, target, fork) for target in chosen]
    return Plan(schema_version=SCHEMA_VERSION, config=config.path, legs=legs, head_sha=head_sha, base_sha=base_sha)


def matrices(config: Config, plan: Plan, *, shards: int = 1) -> Matrices:
    """Spreads the plan's models round-robin over `shards` exports, and each target over the same shards.

    Neighbours in a config tend to be alike in cost, so each goes to another shard. A model's variants stay together:
    the list of them beside their artifacts is written by the job that exports them, and would not be whole otherwise.

    Args:
        config: The config that the plan was made of; it knows the targets' providers.
        plan: What is expected.
        shards: How many exports run at once; more than there are models is cut down, variants not counted.

    Raises:
        UsageError: `shards` is below one, or a matrix would be larger than GitHub takes.
    """
    if shards < 1:
        raise UsageError(f"expected at least one shard, got {shards}", where="--shards")
    models: dict[str, dict[str, None]] = {}
    for leg in plan.legs:
        models.setdefault(leg.model, {})[label(leg.model, leg.variant)] = None
    groups, count = list(models.values()), min(shards, len(models))
    spread = {str(at + 1): "\n".join(name for group in groups[at::count] for name in group) for at in range(count)}
    planned = {leg.target for leg in plan.legs if not leg.not_run}
    entries = [
        _entry(target, shard, members)
        for target in config.targets
        if target.name in planned
        for shard, members in spread.items()
    ]
    found = Matrices(
        export=[ExportEntry(shard=shard, models=members) for shard, members in spread.items()],
        hosted=[entry for entry in entries if hosted(entry.runs_on)],
        self_hosted=[entry for entry in entries if not hosted(entry.runs_on)],
    )
    largest = max(len(found.export), len(found.hosted), len(found.self_hosted))
    if largest > MATRIX_LIMIT:
        raise UsageError(
            f"{largest} jobs in one matrix; GitHub takes {MATRIX_LIMIT}",
            where="--shards",
            hint="Use fewer shards: each of them exports and judges several models in one job.",
        )
    return found


def hosted(runs_on: Sequence[str]) -> bool:
    """Whether these labels name a machine of GitHub's own, made for the job and thrown away after it.

    Anything else counts as self-hosted, larger runners with names of their own too: not knowing is not trusting.
    """
    return len(runs_on) == 1 and _HOSTED.fullmatch(runs_on[0]) is not None


def _leg(model: ModelSpec, target: TargetSpec, fork: bool) -> Leg:
    return Leg(
        model=model.name,
        variant=model.variant,
        target=target.name,
        required=target.required,
        runs_on=target.runs_on,
        not_run=NOT_ON_FORKS if fork and not hosted(target.runs_on) else "",
    )


def _entry(target: TargetSpec, shard: str, models: str) -> VerifyEntry:
    return VerifyEntry(
        target=target.name,
        shard=shard,
        models=models,
        provider=target.provider,
        runs_on=target.runs_on,
        required=target.required,
        gpu=target.provider != CPU,
    )
