"""Inputs to a command line, an exit code to outputs."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.action.harness import ROOT
from tests.action.scripts import job

SWITCHES = {"comment": "true", "cache": "true", "upload": "true"}


def line(command, event="pull_request", **inputs):
    return job.arguments({**SWITCHES, "command": command, **inputs}, event)


def test_what_is_left_empty_gives_no_option():
    assert line("run", out="onnx-ci-out", config="", models="") == ["run", "--out=onnx-ci-out", "--comment"]


def test_lists_are_one_a_line_and_blank_lines_are_none():
    assert line("plan", models="bert\n\n  pool@small  \n", shards="4") == [
        "plan",
        "--model=bert",
        "--model=pool@small",
        "--shards=4",
    ]


def test_a_value_that_looks_like_an_option_stays_a_value():
    assert line("export", models="--python=/tmp/evil") == ["export", "--model=--python=/tmp/evil"]


def test_the_comment_can_be_turned_off():
    assert line("report", comment="false") == ["report", "--no-comment"]
    assert line("verify", comment="true") == ["verify"]


def test_all_problems_are_told_at_once():
    with pytest.raises(job.InputError) as caught:
        line("verify", comment="yes", shards="2", plan="plan.json")
    assert str(caught.value).splitlines() == [
        "input 'comment': expected true or false, got 'yes'",
        "input 'shards' means nothing to the command 'verify'; it belongs to plan",
        "input 'plan' means nothing to the command 'verify'; it belongs to report",
    ]


def test_an_unknown_command_names_the_known_ones():
    with pytest.raises(job.InputError, match="expected one of run, plan, export, verify, report; got 'exprt'"):
        line("exprt")


@pytest.mark.parametrize("event", ["pull_request_target", "workflow_run"])
@pytest.mark.parametrize("command", ["run", "plan", "export", "verify"])
def test_a_pull_requests_code_is_not_run_where_there_are_rights(command, event):
    with pytest.raises(job.InputError, match="must not get"):
        line(command, event)


def test_a_comment_may_be_posted_from_workflow_run():
    assert line("report", "workflow_run") == ["report", "--comment"]


def test_inputs_are_read_from_the_environment_by_name():
    environ = {"INPUT_COMMAND": "plan", "INPUT_WORKING_DIRECTORY": " models ", "PATH": "/bin"}
    assert job.read_inputs(environ) == {"command": "plan", "working-directory": "models"}


@pytest.fixture
def made(tmp_path):
    out = tmp_path / "models" / "out"
    for name in ("results/a.cpu.json", "artifacts/a/model.onnx", "report/report.json", "report/junit.xml", "plan.json"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(json.dumps({"status": "warn"}))
    return tmp_path


def outputs(made, command, code=0, **inputs):
    return job.outputs({"command": command, "out": "out", **inputs}, code, here=made / "models", workspace=made)


def test_paths_start_at_the_workspace_as_other_steps_see_it(made):
    found = outputs(made, "run")
    assert found["report"] == "models/out/report/report.json"
    assert found["upload-results"] == "models/out/results"
    assert found["summary"] == ""


def test_a_job_uploads_only_what_it_made(made):
    uploads = {name: value for name, value in outputs(made, "report").items() if name.startswith("upload-") and value}
    assert set(uploads) == {"upload-report"}
    assert outputs(made, "verify")["upload-artifacts"] == ""


def test_what_shows_a_failure_is_uploaded_by_the_job_that_made_it(made):
    script = made / "models" / "out" / "repro" / "a.cpu" / "y" / "repro.py"
    assert outputs(made, "verify")["upload-repros"] == ""
    script.parent.mkdir(parents=True)
    script.write_text("")
    assert outputs(made, "verify")["upload-repros"] == "models/out/repro"
    assert outputs(made, "report")["upload-repros"] == ""


def test_an_empty_folder_is_nothing_to_upload(tmp_path):
    (tmp_path / "out" / "results").mkdir(parents=True)
    assert (
        job.outputs({"command": "verify", "out": "out"}, 3, here=tmp_path, workspace=tmp_path)["upload-results"] == ""
    )


@pytest.mark.parametrize(
    ("command", "code", "status"),
    [("run", 0, "warn"), ("run", 3, "error"), ("run", 2, "error"), ("export", 0, "pass"), ("export", 1, "fail")],
)
def test_the_status_is_the_reports_and_never_better_than_the_exit_code(made, command, code, status):
    assert outputs(made, command, code)["status"] == status


def test_a_missing_report_is_no_pass(tmp_path):
    assert job.outputs({"command": "run", "out": "out"}, 0, here=tmp_path, workspace=tmp_path)["status"] == "error"


def test_a_leg_is_a_name_that_an_artifact_can_have(made):
    assert outputs(made, "verify", leg='a/b:"c"\n1')["leg"] == "a-b-c-1"
    assert outputs(made, "verify")["leg"] == "verify"


@given(
    st.dictionaries(st.from_regex(r"[a-z-]{1,9}", fullmatch=True), st.text(st.characters(exclude_categories=["Cs"])))
)
def test_no_value_can_end_its_own_output(values):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "output")
        job.write_outputs(values, path)
        with path.open(encoding="utf-8", newline="") as stream:
            text = stream.read()
    read = {}
    while text:
        head, _, text = text.partition("\n")
        name, _, delimiter = head.partition("<<")
        value, _, text = text.partition(f"\n{delimiter}\n")
        read[name] = value
    assert read == values


def test_the_script_runs_the_tree_that_it_came_in_and_takes_the_exit_code_over(tmp_path):
    (tmp_path / "onnx_ci.py").write_text("raise SystemExit('the wrong package')")
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")},
        **{f"INPUT_{name.upper()}": value for name, value in {**SWITCHES, "command": "plan", "out": "out"}.items()},
        "INPUT_CONFIG": "absent.toml",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_WORKSPACE": str(tmp_path),
        "PYTHONPATH": str(tmp_path),
    }
    script = ROOT / "actions" / "job" / "job.py"
    done = subprocess.run(
        [sys.executable, "-I", str(script)], cwd=tmp_path, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "absent.toml" in done.stderr
    assert "exit-code<<" in (tmp_path / "output").read_text()
