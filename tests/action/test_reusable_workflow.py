"""A consumer calls the reusable workflow: shards, two CPU targets, and a GPU leg on a machine without a GPU."""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.action.harness import CONSUMER
from tests.fakes.github import GitHubFake

pytestmark = [pytest.mark.act, pytest.mark.timeout(1200)]
REUSABLE = """
name: onnx
on: [pull_request, push]
permissions: {}
jobs:
  onnx:
    permissions:
      contents: read
      pull-requests: write
    uses: org/onnx-ci/.github/workflows/onnx-ci.yml@v1
    with:
      models: |
        tiny
        small
      shards: "2"
      install-export: echo "the export is installed in $(basename "$PWD")"
      install-verify: echo "for $TARGET comes $PROVIDER"
"""
CONFIG = CONSUMER.joinpath("onnx-ci.toml").read_text()
TWO_MODELS = CONFIG + '\n[models.small]\nentrypoint = "tiny.py"\n'


@pytest.fixture(scope="module")
def push(act):
    """A push to main of a repository whose only target is a GPU, and a required one."""
    gpu_only = CONFIG[: CONFIG.index("[targets.cpu]")] + CONFIG[CONFIG.index("[targets.gpu]") :]
    files = {"onnx-ci.toml": gpu_only.replace("required = false\n", "")}
    workflow = REUSABLE.replace("        small\n", "").replace('shards: "2"', 'shards: "1"')
    with GitHubFake(repository="org/models") as fake:
        found = act(workflow, fake, event={"ref": "refs/heads/main"}, event_name="push", files=files)
    return SimpleNamespace(act=found, fake=fake, kept=Path(f"{found.store}-cache"))


@pytest.fixture(scope="module")
def run(act, push, tmp_path_factory):
    """A pull request; its base was exported with another torch, at an older opset."""
    store = tmp_path_factory.mktemp("pull") / "store"
    shutil.copytree(push.kept, f"{store}-cache")
    (contract,) = Path(f"{store}-cache").rglob("contract.json")
    older = re.sub(r'("torch": )"[^"]*"', r'\1"2.0.0+older"', contract.read_text())
    contract.write_text(re.sub(r'("opset": )\d+', r"\g<1>17", older))
    with GitHubFake(comments=3, repository="org/models") as fake:
        found = act(REUSABLE, fake, store=store, files={"onnx-ci.toml": TWO_MODELS})
    return SimpleNamespace(act=found, fake=fake)


def test_every_leg_ran_and_only_those_without_a_gpu_failed(run):
    jobs = {" ".join(name.split()).rpartition("/")[2] for name in run.act.jobs}
    kinds = sorted(name.rpartition(" ")[0] or name for name in jobs)
    assert kinds == [
        *["export"] * 2,
        "plan",
        "report",
        *["verify cpu"] * 2,
        *["verify gpu"] * 2,
        *["verify threads"] * 2,
    ], run.act.log()
    failed = {job for job, _, result in run.act.steps() if result == "failure"}
    assert failed
    assert all("verify gpu" in job for job in failed), run.act.log()


def test_all_legs_end_in_one_comment(run):
    (comment,) = run.fake.ours()
    for name in ("tiny", "small", "cpu", "threads", "gpu"):
        assert name in comment["body"]
    assert [call.verb for call in run.fake.calls] == ["GET", "POST"]


def test_a_gpu_leg_without_a_gpu_says_so_and_never_passes(run):
    found = run.act.statuses()
    assert found[("tiny", "cpu")] == found[("small", "threads")] == "pass"
    assert found[("tiny", "gpu")] == found[("small", "gpu")] == "error"
    texts = [
        finding["message"]
        for one in run.act.report()["results"]
        if one["target"] == "gpu"
        for finding in one["findings"]
        if finding["status"] == "error"
    ]
    assert texts
    assert all("CUDAExecutionProvider" in text for text in texts)


def test_a_target_that_is_not_required_counts_as_a_warning(run):
    assert (run.act.report()["status"], run.act.report()["exit_code"]) == ("warn", 0)


def test_what_the_caller_installs_is_run_where_it_belongs(run):
    assert "the export is installed in hostexecutor" in run.act.log()
    assert "for threads comes CPUExecutionProvider" in run.act.log()


def test_a_version_that_is_not_the_bases_is_shown(run):
    (torch,) = [change for change in run.act.report()["versions"] if change["package"] == "torch"]
    assert torch["base"] == "2.0.0+older"
    assert "2.0.0+older" in run.fake.ours()[0]["body"]


def test_what_changed_against_the_bases_contract_is_shown(run):
    assert "the opset was raised from 17 to " in run.fake.ours()[0]["body"]


def test_a_required_gpu_that_is_missing_is_no_pass(push):
    assert push.act.code == 1
    assert (push.act.report()["status"], push.act.report()["exit_code"]) == ("error", 3)


def test_a_matrix_without_jobs_is_no_job(push):
    assert {job.split("/")[2].split()[0] for job in push.act.jobs} == {"plan", "export", "verify", "report"}
    assert not any("verify" in job and "gpu" not in job for job in push.act.jobs)


def test_a_push_has_no_comment_and_keeps_the_contracts(push):
    assert push.fake.calls == []
    (kept,) = push.kept.iterdir()
    assert (kept / "tiny" / "contract.json").exists()
