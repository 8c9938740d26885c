import io
import json
import re
import subprocess
import sys

import pytest
from tests.fakes.github import NOT_ACCESSIBLE, GitHubFake
from tests.fakes.results import healthy, realistic

from onnx_ci.errors import ExitCode, OnnxCiError
from onnx_ci.records import codec
from onnx_ci.records.report import Leg, Plan, Report
from onnx_ci.records.result import label
from onnx_ci.report import job

SHA = "e" * 40
FILES = {"report.json", "summary.md", "comment.md", "junit.xml", "index.html"}


class Step:
    """A step of a job: its folder, its environment, and what it gave."""

    def __init__(self, tmp_path, results, plan=None):
        self.out = tmp_path / "out"
        (self.out / "results").mkdir(parents=True)
        for one in results:
            name = f"{label(one.model, one.variant)}.{one.target}.json"
            (self.out / "results" / name).write_text(codec.dumps(one))
        self.plan = None
        if plan:
            self.plan = self.out / "plan.json"
            self.plan.write_text(codec.dumps(plan))
        self.summary, self.output, self.event = (tmp_path / name for name in ("summary", "output", "event.json"))
        self.env = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_EVENT_PATH": str(self.event),
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_REPOSITORY": "org/name",
            "GITHUB_SERVER_URL": "https://ghe.example.com",
            "GITHUB_RUN_ID": "90",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_RUN_NUMBER": "4",
            "GITHUB_SHA": "f" * 40,
            "GITHUB_TOKEN": "ghs_a_token_that_is_fake",
        }
        self.payload({"pull_request": {"number": 7, "head": {"sha": SHA}}})

    def payload(self, payload):
        self.event.write_text(json.dumps(payload))

    def run(self, fake=None, **more):
        stdout = io.StringIO()
        env = self.env | ({"GITHUB_API_URL": fake.url} if fake else {}) | more.pop("env", {})
        given = {"out": self.out, "plan": self.plan, "base": None, "comment": fake is not None}
        code = job.run(**(given | more), env=env, stdout=stdout, sleep=lambda seconds: None)
        return code, stdout.getvalue()

    def outputs(self):
        found = re.findall(r"^([a-z-]+)<<(\S+)\n(.*?)\n\2$", self.output.read_text(), re.MULTILINE | re.DOTALL)
        return {name: value for name, _, value in found}

    def report(self):
        return codec.loads(Report, (self.out / "report" / "report.json").read_text())


@pytest.fixture
def broken(tmp_path):
    results, plan, _ = realistic()
    return Step(tmp_path, results, plan)


@pytest.fixture
def well(tmp_path):
    return Step(tmp_path, healthy("classifier", 1.0, 2.0))


def test_everything_is_written_and_the_exit_code_is_the_reports(broken):
    code, said = broken.run()
    assert code is ExitCode.BROKEN
    assert {path.name for path in (broken.out / "report").iterdir()} == FILES
    assert broken.report().status == "fail"
    assert "1 of 4\u00a0models broke a promise" in broken.summary.read_text()
    assert broken.outputs() == {
        "status": "fail",
        "exit-code": "1",
        "report": (broken.out / "report").as_posix(),
        "comment-id": "",
    }
    assert "::error file=models/pool.py,line=44," in said


def test_a_second_run_updates_the_same_comment_on_the_second_page(broken):
    with GitHubFake(comments=130) as fake:
        broken.run(fake)
        broken.run(fake, env={"GITHUB_RUN_ID": "91"})
        [ours] = fake.ours()
        assert "id=91" in ours["body"]
        assert SHA[:10] in ours["body"]
        assert "https://ghe.example.com/org/name/actions/runs/91" in ours["body"]
        assert broken.outputs()["comment-id"] == str(ours["id"])


def test_a_read_only_token_warns_and_changes_no_exit_code(well):
    with GitHubFake(read_only=True) as fake:
        code, said = well.run(fake)
        assert code is ExitCode.PASS
        assert "::warning title=onnx-ci%3A no comment" in said
        assert NOT_ACCESSIBLE in said
        assert "the model passes" in well.summary.read_text()
        assert fake.bodies() == []


def test_a_comment_asked_for_without_a_token_warns(well):
    code, said = well.run(comment=True, env={"GITHUB_TOKEN": ""})
    assert code is ExitCode.PASS
    assert "there is no token" in said


def test_a_push_has_no_comment_and_no_warning(well):
    with GitHubFake() as fake:
        code, said = well.run(fake, env={"GITHUB_EVENT_NAME": "push"})
        assert code is ExitCode.PASS
        assert "::warning" not in said
        assert fake.calls == []


def test_a_forks_run_is_posted_on_the_pull_request_that_github_names(well):
    run = {
        "event": "pull_request",
        "id": 80,
        "run_attempt": 2,
        "run_number": 3,
        "head_sha": SHA,
        "head_branch": "topic",
        "head_repository": {"full_name": "fork/name", "owner": {"login": "fork"}},
    }
    well.payload({"workflow_run": run})
    pulls = ((7, "fork:topic", SHA, "fork/name"), (8, "fork:topic", "0" * 40, "fork/name"))
    with GitHubFake(pulls=pulls) as fake:
        well.run(fake, env={"GITHUB_EVENT_NAME": "workflow_run"})
        assert "id=80 attempt=2 number=3" in fake.bodies(7)[0]


def test_an_artifact_can_not_choose_the_pull_request(well):
    (well.out / "pr_number").write_text("1")
    (well.out / "plan.json").write_text(json.dumps({"schema_version": 1, "number": 1, "config": "x", "legs": []}))
    well.payload({"workflow_run": {"event": "pull_request", "head_sha": SHA}})
    with GitHubFake() as fake:
        well.run(fake, env={"GITHUB_EVENT_NAME": "workflow_run"}, plan=well.out / "plan.json")
        assert fake.calls == []


def test_an_older_run_leaves_the_comment_and_still_says_its_id(broken):
    with GitHubFake() as fake:
        broken.run(fake)
        before = fake.bodies()
        _, said = broken.run(fake, env={"GITHUB_RUN_ID": "89"})
        assert fake.bodies() == before
        assert "a newer run" in said


def test_a_missing_plan_that_was_named_is_a_problem_and_the_results_stand(well):
    code, said = well.run(plan=well.out / "plan.json")
    assert code is ExitCode.UNKNOWN
    assert len(well.report().results) == 2
    assert "plan.json" in said


def test_a_result_of_another_version_stops_the_pass_and_loses_no_other(well):
    (well.out / "results" / "old.json").write_text('{"schema_version": 7}')
    code, said = well.run()
    assert code is ExitCode.UNKNOWN
    assert len(well.report().results) == 2
    assert "schema version 7" in said
    assert "reads version 1" in said


def test_no_results_and_no_plan_is_not_knowing(tmp_path):
    code, _ = Step(tmp_path, []).run()
    assert code is ExitCode.UNKNOWN


def test_a_plan_without_legs_is_no_model_touched(tmp_path):
    step = Step(tmp_path, [], Plan(schema_version=1, config="sub/onnx-ci.toml", legs=[]))
    with GitHubFake() as fake:
        code, _ = step.run(fake)
        assert code is ExitCode.PASS
        assert "no model was touched" in fake.bodies()[0]
        assert "<!-- onnx-ci:sub/onnx-ci.toml -->" in fake.bodies()[0]


def test_a_missing_leg_of_a_required_target_is_shown_in_the_comment(tmp_path):
    legs = [Leg(model="classifier", variant=None, target="gpu", required=True)]
    step = Step(tmp_path, healthy("classifier", 1.0, 2.0), Plan(schema_version=1, config="c.toml", legs=legs))
    with GitHubFake() as fake:
        code, _ = step.run(fake)
        assert code is ExitCode.UNKNOWN
        assert "| gpu | ❓\u00a0no result |" in fake.bodies()[0]


def test_the_step_summary_stays_below_what_github_drops(broken):
    broken.summary.write_text("x" * ((1 << 20) - 3000))
    broken.run()
    assert broken.summary.stat().st_size <= 1 << 20
    assert "Cut to fit" in broken.summary.read_text()


def test_a_report_that_can_not_be_written_says_where(well):
    (well.out / "report").write_text("a file is in the way")
    with pytest.raises(OnnxCiError, match="can't be written") as raised:
        well.run()
    assert raised.value.exit_code is ExitCode.UNKNOWN


def test_a_report_folder_that_is_a_link_is_not_written_through(well, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (well.out / "report").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OnnxCiError, match="is a link"):
        well.run()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_in_the_place_of_a_report_file_is_replaced_and_not_followed(well, tmp_path):
    (tmp_path / "precious").write_text("keep")
    (well.out / "report").mkdir()
    (well.out / "report" / "report.json").symlink_to(tmp_path / "precious")
    well.run()
    assert (tmp_path / "precious").read_text() == "keep"
    assert well.report().status == "pass"


def test_outside_github_the_table_is_printed_and_no_command(well):
    code, said = well.run(env={"GITHUB_ACTIONS": ""})
    assert code is ExitCode.PASS
    assert "::" not in said
    assert "the model passes" in said
    assert "report/index.html" in said


def test_the_same_results_give_the_same_bytes(broken):
    broken.run()
    first = {name: (broken.out / "report" / name).read_bytes() for name in FILES}
    broken.run()
    assert first == {name: (broken.out / "report" / name).read_bytes() for name in FILES}


def test_the_job_starts_without_what_the_users_side_needs():
    heavy = "torch onnx onnxruntime numpy onnxscript"
    code = f"import sys, onnx_ci.report.job; print(sorted(set('{heavy}'.split()) & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_history_is_added_to_and_shown(well):
    past = well.out.parent / "kept" / "latency.jsonl"
    for run in ("90", "91"):
        well.run(history=past, now=lambda: "2026-01-02T03:04:05+00:00", env={"GITHUB_RUN_ID": run})
    lines = [json.loads(line) for line in past.read_text().splitlines()]
    assert [(one["run"], one["commit"], one["date"][:10]) for one in lines] == [
        ("90", SHA, "2026-01-02"),
        ("91", SHA, "2026-01-02"),
    ]
    assert "Latency over time" in (well.out / "report" / "index.html").read_text()


def test_a_history_that_can_not_be_read_is_a_note(well, tmp_path):
    (tmp_path / "latency.jsonl").write_bytes(b"\xff")
    code, _ = well.run(history=tmp_path / "latency.jsonl")
    assert code is ExitCode.PASS
    assert "is not UTF-8 text: it is begun anew" in well.report().notes[0]
