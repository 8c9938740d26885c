"""A consumer calls the reusable workflow: shards, two CPU targets, and a GPU leg on a machine without a GPU."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.action.harness import CONSUMER, REUSABLE
from tests.fakes.github import GitHubFake

pytestmark = [pytest.mark.act, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def run(act, tmp_path_factory):
    with GitHubFake(repository="org/models", comments=3) as fake:
        found = act(REUSABLE, fake)
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
    failed = {job for (job, _), result in run.act.steps().items() if result == "failure"}
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


def test_a_required_gpu_that_is_missing_is_no_pass_and_a_push_keeps_the_contracts(act):
    config = CONSUMER.joinpath("onnx-ci.toml").read_text()
    gpu_only = config[: config.index("[targets.cpu]")] + config[config.index("[targets.gpu]") :]
    files = {"onnx-ci.toml": gpu_only.replace("required = false\n", "")}
    one = REUSABLE.replace("        small\n", "").replace('shards: "2"', 'shards: "1"')
    with GitHubFake(repository="org/models") as fake:
        run = act(one, fake, event={"ref": "refs/heads/main"}, event_name="push", files=files)
    assert run.code == 1
    assert not any("verify" in job and "gpu" not in job for job in run.jobs)
    assert (run.report()["status"], run.report()["exit_code"]) == ("error", 3)
    assert fake.calls == []
    (kept,) = Path(f"{run.store}-cache").iterdir()
    assert (kept / "tiny" / "contract.json").exists()
