"""A consumer's workflow says `uses: org/onnx-ci@v1`: everything in one job, twice, and once with a fork's token."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.action.harness import EXAMPLES, FORKED, TOKEN
from tests.fakes.github import GitHubFake

pytestmark = [pytest.mark.act, pytest.mark.timeout(1200)]

# What the documentation shows, and a later step that uses what the action says.
SINGLE = (
    (EXAMPLES / "single-job.yml").read_text().replace("- uses: org/", "- id: onnx\n        uses: org/")
    + """
        with:
          targets: cpu
      - if: always()
        shell: bash
        env:
          OUTPUTS: ${{ toJSON(steps.onnx.outputs) }}
        run: echo "said $(echo "$OUTPUTS" | tr -d '\\n')"
"""
)
REPORT = """
name: onnx
on: pull_request
permissions: {}
jobs:
  onnx:
    runs-on: ubuntu-latest
    permissions:
      pull-requests: write
    steps:
      - uses: actions/checkout@v7
      - uses: org/onnx-ci@v1
        with:
          command: report
"""


def packages():
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "freeze", "--all"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def said(run):
    """The action's outputs, as a later step of the consumer sees them."""
    (line,) = {line for line in run.log().splitlines() if line.startswith("said {")}
    return json.loads(line.removeprefix("said "))


@pytest.fixture(scope="module")
def runs(act):
    with GitHubFake(repository="org/models", comments=130) as fake:
        before = packages()
        first = act(SINGLE, fake)
        after = packages()
        calls = len(fake.calls)
        second = act(SINGLE, fake, GITHUB_RUN_ID="2")
    return SimpleNamespace(first=first, second=second, fake=fake, later=fake.calls[calls:], before=before, after=after)


def test_it_exports_and_verifies_and_every_step_passes(runs):
    assert runs.first.jobs == {"onnx/onnx": "success"}, runs.first.log()
    assert runs.first.all_steps_passed()
    assert runs.first.statuses() == {("tiny", "export"): "pass", ("tiny", "cpu"): "pass"}


def test_it_says_its_verdict_to_later_steps(runs):
    found = said(runs.first)
    assert (found["status"], found["exit-code"]) == ("pass", "0")
    assert found["report"] == "onnx-ci-out/report/report.json"
    assert found["junit"] == "onnx-ci-out/report/junit.xml"
    assert found["comment-id"] == str(runs.fake.ours()[0]["id"])


def test_it_keeps_plan_results_artifacts_and_report(runs):
    assert runs.first.artifacts() == [
        "onnx-ci-artifacts-run",
        "onnx-ci-plan",
        "onnx-ci-report",
        "onnx-ci-results-run",
    ]
    assert (runs.first.store / "onnx-ci-artifacts-run" / "tiny" / "model.onnx").exists()
    assert (runs.first.store / "onnx-ci-artifacts-run" / "provenance.json").exists()


def test_the_summary_and_the_comment_hold_the_table(runs):
    (comment,) = runs.fake.ours()
    for text in (runs.first.summary(), comment["body"]):
        assert "| `tiny`" in text
        assert "cpu" in text
        assert "pass" in text


def test_the_second_run_updates_the_comment_that_it_finds_on_page_two(runs):
    assert runs.second.jobs == {"onnx/onnx": "success"}, runs.second.log()
    assert len(runs.fake.ours()) == 1
    assert [call.verb for call in runs.later] == ["GET", "GET", "PATCH"]
    assert "page=2" in runs.later[1].query


def test_the_token_comes_from_the_input_and_is_in_no_log(runs):
    assert {call.authorization for call in runs.fake.calls} == {f"token {TOKEN}"}
    assert TOKEN not in runs.first.log()


def test_the_users_packages_are_the_same_before_and_after(runs):
    assert runs.before == runs.after


def test_a_token_that_may_only_read_ends_in_the_summary_with_a_warning(act, runs):
    out = {
        f"onnx-ci-out/{'results/' if 'results' in path.parent.name else ''}{path.name}": path.read_text()
        for kind in ("plan", "results-run")
        for path in (runs.first.store / f"onnx-ci-{kind}").iterdir()
    }
    with GitHubFake(repository="org/models", read_only=True) as fake:
        run = act(REPORT, fake, event=FORKED, files=out)
    assert run.jobs == {"onnx/onnx": "success"}, run.log()
    assert run.all_steps_passed()
    assert "| `tiny`" in run.summary()
    (warning,) = [text for text in run.annotations("warning") if "comment" in text]
    assert "Resource not accessible by integration" in warning
    assert fake.ours() == []
