"""A consumer calls the reusable workflow: shards, two CPU targets, and a GPU leg on a machine without a GPU."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.action.harness import CONSUMER, PULL_REQUEST
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
# A comparison ends once it is settled; a busy machine needs more than the fifth of a second that the others do with.
CONFIG = CONSUMER.joinpath("onnx-ci.toml").read_text().replace("budget_seconds = 0.2", "budget_seconds = 5")
SMALL = '\n[models.small]\nentrypoint = "small.py"\n'
ONCE = """
import torch

TIMES = 1


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("same", torch.eye(512))

    def forward(self, x):
        for _ in range(TIMES):
            x = x @ self.same
        return x


def make_model():
    return Small().eval()


def make_inputs():
    return [("one", {"x": torch.linspace(-1, 1, 1024).reshape(2, 512)})]


def export_kwargs():
    return {"dynamic_shapes": {"x": {0: torch.export.Dim("batch")}}, "output_names": ["y"]}
"""
MANY_TIMES = ONCE.replace("TIMES = 1", "TIMES = 60")
FAILED = ["report", "verify cpu 2", "verify gpu 1", "verify gpu 2", "verify threads 2"]
WANTED = "b" * 40
"""What the pull request is merged into; no run has kept its artifacts."""


@pytest.fixture(scope="module")
def push(act):
    """A push to main of a repository whose only target is a GPU, and a required one."""
    gpu_only = CONFIG[: CONFIG.index("[targets.cpu]")] + CONFIG[CONFIG.index("[targets.gpu]") :]
    files = {"onnx-ci.toml": gpu_only.replace("required = false\n", "") + SMALL, "small.py": ONCE}
    event = {"ref": "refs/heads/main", "repository": {"default_branch": "main"}}
    with GitHubFake(repository="org/models") as fake:
        workflow = REUSABLE.replace('shards: "2"', 'shards: "1"')
        found = act(workflow, fake, event=event, event_name="push", files=files)
    return SimpleNamespace(act=found, fake=fake, kept=Path(f"{found.store}-cache"))


@pytest.fixture(scope="module")
def run(act, push, tmp_path_factory):
    """A pull request that does the small one's work many times over.

    The nearest base was exported with another torch, at an older opset.
    """
    store = tmp_path_factory.mktemp("pull") / "store"
    shutil.copytree(push.kept, f"{store}-cache")
    (contract,) = Path(f"{store}-cache").rglob("tiny/contract.json")
    older = re.sub(r'("torch": )"[^"]*"', r'\1"2.0.0+older"', contract.read_text())
    contract.write_text(re.sub(r'("opset": )\d+', r"\g<1>17", older))
    earlier = (
        '{"schema_version": 1, "date": "an earlier day", "commit": "", "run": "", "model": "tiny", "target": "cpu", '
    )
    earlier += (
        '"artifact": "", "p50_ms": 1.0, "p90_ms": 1.0, "p99_ms": 1.0, "samples": 9, "ratio": null, "conditions": '
    )
    earlier += '{"machine": "another one", "provider": "CPUExecutionProvider", "threads": 1, "transfers": "inside", '
    earlier += '"case": "one", "dims": {}, "versions": {}, "options": {}}}\n'
    next(Path(f"{store}-cache").rglob("latency.jsonl")).write_text(earlier)
    with GitHubFake(comments=3, repository="org/models") as fake:
        event = {"pull_request": {**PULL_REQUEST["pull_request"], "base": {"sha": WANTED}}}
        files = {"onnx-ci.toml": CONFIG + SMALL, "small.py": MANY_TIMES}
        found = act(REUSABLE, fake, event=event, store=store, files=files, GITHUB_RUN_ID="2")
    return SimpleNamespace(act=found, fake=fake)


def test_every_leg_ran_and_only_those_that_are_slower_or_without_a_gpu_failed(run):
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
    failed = {job.rpartition("/")[2] for job, _, result in run.act.steps() if result == "failure"}
    assert sorted(re.sub(r"-\d+$", "", job) for job in failed) == FAILED, run.act.log()


def test_all_legs_end_in_one_comment(run):
    (comment,) = run.fake.ours()
    for name in ("tiny", "small", "cpu", "threads", "gpu"):
        assert name in comment["body"]
    assert [call.verb for call in run.fake.calls] == ["GET", "POST"]


def test_a_gpu_leg_without_a_gpu_says_so_and_never_passes(run):
    found = run.act.statuses()
    assert found[("tiny", "cpu")] == found[("tiny", "threads")] == "pass"
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


def test_a_target_that_is_not_required_is_not_why_it_could_not_be_told(run):
    assert (run.act.report()["status"], run.act.report()["exit_code"]) == ("fail", 1)
    assert any("tiny on gpu: not required" in note for note in run.act.report()["notes"])


def test_work_that_is_done_many_times_over_is_slower_than_the_bases(run):
    broken = [
        (one["model"], one["target"], found["rule"], "operators" in found["data"].get("why", {}))
        for one in run.act.report()["results"]
        for found in one["findings"]
        if found["status"] == "fail"
    ]
    assert broken == [("small", target, "latency.regression", True) for target in ("cpu", "threads")]
    assert "times the base's time" in run.fake.ours()[0]["body"]


def test_a_base_that_was_changed_after_its_export_is_not_timed(run):
    said = [
        found["message"]
        for one in run.act.report()["results"]
        for found in one["findings"]
        if (one["model"], one["target"], found["rule"]) == ("tiny", "cpu", "latency.regression")
    ]
    assert said == [
        "not compared with the base, since the base's artifact is not what was exported: "
        "contract.json was changed after the export"
    ]


def test_a_base_of_another_commit_is_said(run, push):
    kept = json.loads((next(push.kept.iterdir()) / "provenance.json").read_text())["commit"]
    assert f"The base is commit {kept[:10]}, not {WANTED[:10]}" in run.act.report()["notes"][0]
    assert f"base `{kept[:10]}`" in run.fake.ours()[0]["body"]


def test_what_the_caller_installs_is_run_where_it_belongs(run):
    assert "the export is installed in hostexecutor" in run.act.log()
    assert "for threads comes CPUExecutionProvider" in run.act.log()


def test_a_version_that_is_not_the_bases_is_shown(run):
    (torch,) = [change for change in run.act.report()["versions"] if change["package"] == "torch"]
    assert torch["base"] == "2.0.0+older"
    assert "2.0.0+older" in run.fake.ours()[0]["body"]


def test_what_changed_against_the_bases_contract_is_shown(run):
    assert "the opset was raised from 17 to " in run.fake.ours()[0]["body"]


def test_a_new_machine_is_a_new_series(run):
    page = (run.act.store / "onnx-ci-report" / "index.html").read_text()
    assert "A new series, since other conditions began: machine another one →" in page


def test_a_required_gpu_that_is_missing_is_no_pass(push):
    assert push.act.code == 1
    assert (push.act.report()["status"], push.act.report()["exit_code"]) == ("error", 3)


def test_a_matrix_without_jobs_is_no_job(push):
    assert {job.split("/")[2].split()[0] for job in push.act.jobs} == {"plan", "export", "verify", "report", "keep"}
    assert not any("verify" in job and "gpu" not in job for job in push.act.jobs)


def test_a_push_has_no_comment_and_keeps_its_artifacts_without_their_cases(push):
    assert push.fake.calls == []
    (kept,) = push.kept.iterdir()
    assert {path.name for path in kept.glob("*.json*")} == {"latency.jsonl", "provenance.json"}
    assert {path.name for path in (kept / "tiny").iterdir()} >= {"contract.json", "manifest.json", "model.onnx"}
    assert list(kept.rglob("test_data_set_*")) == []


def test_a_base_that_no_run_has_kept_is_exported_from_its_commit(act):
    def event(repository):
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, check=True, text=True)
        return {"pull_request": {**PULL_REQUEST["pull_request"], "base": {"sha": head.stdout.strip()}}}

    cpu_only = CONFIG[: CONFIG.index("[targets.threads]")]
    workflow = REUSABLE.replace("        small\n", "").replace('shards: "2"', "export-base: true")
    with GitHubFake(repository="org/models") as fake:
        found = act(workflow, fake, event=event, files={"onnx-ci.toml": cpu_only}, GITHUB_RUN_ID="77")
    assert found.code == 0, found.log()
    assert found.statuses() == {("tiny", "export"): "pass", ("tiny", "cpu"): "pass"}
    assert "was exported in this run, since none was kept" in found.report()["notes"][0]
    said = [one["message"] for one in found.report()["results"][1]["findings"] if one["rule"] == "latency.regression"]
    assert said == ["the file has the very bytes of the base's: there is nothing to compare"]
