"""A fork's pull request: no self-hosted leg, no write token, and a second workflow that posts the comment."""

import shutil

import pytest

from tests.action.harness import EXAMPLES, FORKED, SHA
from tests.fakes.github import GitHubFake

pytestmark = [pytest.mark.act, pytest.mark.timeout(1200)]

# Both as the documentation shows them.
PULL_REQUEST_WORKFLOW = (EXAMPLES / "pull-request.yml").read_text()
COMMENT = (EXAMPLES / "fork-comment.yml").read_text()


@pytest.fixture(scope="module")
def run(act, tmp_path_factory):
    store = tmp_path_factory.mktemp("fork") / "store"
    with GitHubFake(repository="org/models", read_only=True) as fake:
        return act(PULL_REQUEST_WORKFLOW, fake, event=FORKED, store=store)


def test_self_hosted_legs_are_off_and_their_row_says_why(run):
    assert run.code == 0, run.log()
    assert not any("gpu" in job for job in run.jobs)
    assert "not run on forks" in run.summary()
    assert run.report()["exit_code"] == 0


def test_the_comment_is_posted_by_a_workflow_that_reads_the_runs_results_as_data(act, run, tmp_path):
    shutil.copytree(run.store, tmp_path / "store")
    shutil.rmtree(tmp_path / "store" / "onnx-ci-report")
    repository = {"full_name": "stranger/models", "owner": {"login": "stranger"}}
    event = {
        "workflow_run": {
            "id": 99,
            "run_attempt": 1,
            "run_number": 4,
            "event": "pull_request",
            "head_sha": SHA,
            "head_branch": "better",
            "head_repository": repository,
        }
    }
    with GitHubFake(repository="org/models", pulls=((7, "stranger:better", SHA, "stranger/models"),)) as fake:
        found = act(COMMENT, fake, event=event, event_name="workflow_run", store=tmp_path / "store")
    assert found.all_steps_passed(), found.log()
    (comment,) = fake.ours()
    assert "not run on forks" in comment["body"]
