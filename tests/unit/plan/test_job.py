import json

import pytest

from onnx_ci.errors import OnnxCiError
from onnx_ci.plan import job
from onnx_ci.records import codec
from onnx_ci.records.model import Config, ModelSpec, TargetSpec
from onnx_ci.records.report import Plan

CONFIG = Config(
    path="onnx-ci.toml",
    models=[ModelSpec(name="a", entrypoint="a.py"), ModelSpec(name="b", entrypoint="b.py", variant="x")],
    targets=[
        TargetSpec(name="cpu", provider="CPUExecutionProvider"),
        TargetSpec(name="gpu", provider="CUDAExecutionProvider", runs_on=["self-hosted", "gpu"]),
    ],
)


def pull_request(repository, sha="f" * 40):
    return {"pull_request": {"head": {"sha": sha, "repo": {"full_name": repository}}}}


@pytest.fixture
def environ(tmp_path):
    def make(event):
        path = tmp_path / "event.json"
        path.write_text(json.dumps(event))
        return {
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_REPOSITORY": "org/models",
            "GITHUB_SHA": "0" * 40,
            "GITHUB_OUTPUT": str(tmp_path / "output"),
        }

    return make


def outputs(tmp_path):
    return dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())


def test_the_plan_can_be_read_back_and_the_matrices_are_what_github_takes(tmp_path, environ):
    plan, _ = job.run(CONFIG, out=tmp_path / "out", environ=environ(pull_request("org/models")))
    assert codec.loads(Plan, (tmp_path / "out" / "plan.json").read_bytes()) == plan
    assert plan.head_sha == "f" * 40
    matrices = {name: json.loads(value) for name, value in outputs(tmp_path).items() if name.endswith("matrix")}
    assert matrices["export-matrix"] == {"include": [{"shard": "1", "models": "a\nb@x"}]}
    assert matrices["hosted-matrix"]["include"][0]["runs_on"] == ["ubuntu-latest"]
    assert matrices["self-hosted-matrix"]["include"][0]["target"] == "gpu"


def test_the_commit_that_a_pull_request_is_merged_into_is_told(tmp_path, environ):
    event = pull_request("org/models")
    event["pull_request"]["base"] = {"sha": "b" * 40}
    plan, _ = job.run(CONFIG, out=tmp_path / "out", environ=environ(event))
    assert plan.base_sha == outputs(tmp_path)["base-sha"] == "b" * 40


def test_a_forks_run_has_no_self_hosted_matrix(tmp_path, environ):
    job.run(CONFIG, out=tmp_path / "out", environ=environ(pull_request("stranger/models")))
    assert outputs(tmp_path)["self-hosted-matrix"] == ""


def test_outside_github_nothing_is_written_but_the_files(tmp_path):
    plan, _ = job.run(CONFIG, out=tmp_path / "out", environ={})
    assert plan.head_sha == ""
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["matrix.json", "out", "plan.json"]


def test_a_push_is_planned_at_its_own_commit(tmp_path, environ):
    plan, _ = job.run(CONFIG, out=tmp_path / "out", environ=environ({"ref": "refs/heads/main"}))
    assert plan.head_sha == "0" * 40
    assert not any(leg.not_run for leg in plan.legs)


@pytest.mark.parametrize("head", [{"sha": "a", "repo": None}, {"sha": "a"}, None])
def test_a_pull_request_whose_repository_is_gone_counts_as_a_forks(head):
    assert job.is_fork({"pull_request": {"head": head}}, "org/models")


def test_an_event_that_cant_be_read_is_not_taken_for_trusted(tmp_path):
    broken = tmp_path / "event.json"
    broken.write_text("{")
    with pytest.raises(OnnxCiError, match="payload can't be read"):
        job.run(CONFIG, out=tmp_path, environ={"GITHUB_EVENT_PATH": str(broken)})
