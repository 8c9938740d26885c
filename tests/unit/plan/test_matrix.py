import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnx_ci.errors import UsageError
from onnx_ci.plan import matrix
from onnx_ci.records.model import Config, ModelSpec, TargetSpec

CPU = TargetSpec(name="cpu", provider="CPUExecutionProvider")
GPU = TargetSpec(name="gpu", provider="CUDAExecutionProvider", runs_on=["self-hosted", "linux", "gpu"], required=False)


def config(models=3, targets=(CPU, GPU)):
    return Config(
        path="onnx-ci.toml",
        models=[ModelSpec(name=f"m{at}", entrypoint=f"m{at}.py") for at in range(models)],
        targets=list(targets),
    )


def spread(models, shards, **plan):
    resolved = config(models)
    return matrix.matrices(resolved, matrix.make(resolved, **plan), shards=shards)


def test_each_model_is_expected_once_as_an_export_and_once_on_each_target():
    plan = matrix.make(config(2), head_sha="abc")
    assert [(leg.model, leg.target, leg.required) for leg in plan.legs] == [
        ("m0", "export", True),
        ("m0", "cpu", True),
        ("m0", "gpu", False),
        ("m1", "export", True),
        ("m1", "cpu", True),
        ("m1", "gpu", False),
    ]
    assert (plan.head_sha, plan.config) == ("abc", "onnx-ci.toml")


def test_models_are_spread_round_robin():
    found = spread(5, 2)
    assert [entry.models.split("\n") for entry in found.export] == [["m0", "m2", "m4"], ["m1", "m3"]]


@given(models=st.integers(1, 40), shards=st.integers(1, 60))
def test_every_model_is_in_exactly_one_shard_and_no_shard_is_empty(models, shards):
    found = spread(models, shards)
    members = [name for entry in found.export for name in entry.models.split("\n")]
    assert sorted(members) == sorted(f"m{at}" for at in range(models))
    assert len(found.export) == min(models, shards)
    assert [(entry.shard, entry.models) for entry in found.hosted] == [
        (entry.shard, entry.models) for entry in found.export
    ]


def test_hosted_and_self_hosted_legs_are_apart_and_say_what_they_need():
    found = spread(1, 1)
    (hosted,), (own,) = found.hosted, found.self_hosted
    assert (hosted.target, hosted.gpu, hosted.required, hosted.runs_on) == ("cpu", False, True, ["ubuntu-latest"])
    assert (own.target, own.gpu, own.required, own.runs_on) == ("gpu", True, False, ["self-hosted", "linux", "gpu"])


def test_for_a_fork_the_self_hosted_legs_are_off_and_the_plan_says_why():
    plan = matrix.make(config(1), fork=True)
    assert {leg.target: leg.not_run for leg in plan.legs} == {"export": "", "cpu": "", "gpu": matrix.NOT_ON_FORKS}
    assert spread(1, 1, fork=True).self_hosted == []


def test_a_chosen_target_alone_is_planned():
    found = spread(2, 1, targets=["gpu"])
    assert found.hosted == []
    assert [entry.target for entry in found.self_hosted] == ["gpu"]


@pytest.mark.parametrize(
    "label",
    [
        "ubuntu-latest",
        "ubuntu-24.04",
        "ubuntu-24.04-arm",
        "ubuntu-slim",
        "windows-2025",
        "macos-15-intel",
        "macos-14-xlarge",
    ],
)
def test_githubs_own_runners_are_known(label):
    assert matrix.hosted([label])


@pytest.mark.parametrize(
    "labels", [["self-hosted"], ["gpu"], ["ubuntu-latest", "gpu"], ["ubuntu-gpu"], ["my-ubuntu-latest"], []]
)
def test_anything_else_counts_as_self_hosted(labels):
    assert not matrix.hosted(labels)


@pytest.mark.parametrize("shards", [0, -1])
def test_less_than_one_shard_is_refused(shards):
    with pytest.raises(UsageError, match="at least one shard"):
        spread(2, shards)


def test_more_jobs_than_github_takes_are_refused_before_it_does():
    with pytest.raises(UsageError, match="257 jobs in one matrix"):
        spread(257, 257)


@pytest.mark.parametrize("shards", [1, 2, 3, 9])
def test_the_variants_of_a_model_are_exported_by_one_job(shards):
    """The list beside their artifacts would not be whole otherwise."""
    models = [
        ModelSpec(name=name, entrypoint="m.py:build", variant=variant)
        for name, variant in [("a", None), ("pool", "wide"), ("pool", "tall"), ("pool", "square"), ("b", None)]
    ]
    resolved = Config(path="onnx-ci.toml", models=models, targets=[CPU])
    found = matrix.matrices(resolved, matrix.make(resolved), shards=shards)
    jobs = [entry.models.splitlines() for entry in found.export]
    assert sorted(name for job in jobs for name in job) == ["a", "b", "pool@square", "pool@tall", "pool@wide"]
    assert len(jobs) == min(shards, 3)
    assert sum(any(name.startswith("pool@") for name in job) for job in jobs) == 1
    assert [entry.models for entry in found.hosted] == [entry.models for entry in found.export]
