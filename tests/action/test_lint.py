"""action.yml and the workflows are code: what a reader or an attacker would find in them is held here."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from onnx_ci import cli
from tests.action.harness import ROOT, STANDINS
from tests.action.scripts import copy, job, setup

BIN = Path(sys.prefix) / "bin"
ACTIONS = [ROOT / "action.yml", ROOT / "actions" / "job" / "action.yml"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.yml"))
ALL = [*ACTIONS, *WORKFLOWS, *EXAMPLES]
# What a job may be granted, and the one thing that needs it.
GRANTS = {"contents": "read", "pull-requests": "write", "actions": "read"}


def parse(path):
    return yaml.safe_load(path.read_text())


def name(path):
    return path.relative_to(ROOT).as_posix()


def steps(path):
    document = parse(path)
    if "runs" in document:
        return document["runs"]["steps"]
    return [step for one in document["jobs"].values() for step in one.get("steps", [])]


def tool(*arguments, text=None):
    done = subprocess.run(
        [str(BIN / arguments[0]), *map(str, arguments[1:])], cwd=ROOT, input=text, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_actions_fit_githubs_schema():
    tool("check-jsonschema", "--builtin-schema", "vendor.github-actions", *ACTIONS, *STANDINS.rglob("action.yml"))


def test_workflows_fit_githubs_schema():
    tool("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS, *EXAMPLES)


def test_dependabots_config_fits_its_schema():
    tool("check-jsonschema", "--builtin-schema", "vendor.dependabot", ROOT / ".github" / "dependabot.yml")


def test_zizmor_finds_nothing():
    tool("zizmor", "--offline", "--no-progress", *ALL, ROOT / ".github" / "dependabot.yml")


@pytest.mark.parametrize("path", ALL, ids=name)
def test_shell_steps_pass_shellcheck(path):
    for step in steps(path):
        if "run" in step and step.get("shell", "bash") == "bash":
            tool("shellcheck", "-s", "bash", "-", text=step["run"])


def test_shell_scripts_pass_shellcheck():
    tool("shellcheck", "-s", "bash", *(ROOT / "actions").rglob("*.sh"), *(ROOT / "benchmarks").glob("*.sh"))


@pytest.mark.parametrize("path", ALL, ids=name)
def test_no_expression_is_pasted_into_a_script(path):
    for step in steps(path):
        assert "${{" not in step.get("run", ""), step


@pytest.mark.parametrize("path", ALL, ids=name)
def test_other_peoples_actions_are_pinned_by_commit_with_the_version_beside_it(path):
    for line in re.findall(r"uses:\s*(\S.*)", path.read_text()):
        if not line.startswith(("$/", "org/onnx-ci")):
            assert re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_one_action_has_one_pin():
    pins = {}
    for path in ALL:
        for action, pin in re.findall(r"uses:\s*(actions/[\w-]+)[\w/-]*@(\S.*)", path.read_text()):
            pins.setdefault(action, set()).add(pin)
    assert {action: len(found) for action, found in pins.items() if len(found) > 1} == {}


@pytest.mark.parametrize("path", [*WORKFLOWS, *EXAMPLES], ids=name)
def test_rights_are_none_at_the_top_and_least_in_each_job(path):
    document = parse(path)
    assert document["permissions"] == {}
    for title, one in document["jobs"].items():
        assert "permissions" in one, title
        assert one["permissions"].items() <= GRANTS.items(), title


def test_only_the_reporting_job_may_write_and_it_touches_no_code_of_the_repository():
    for path in WORKFLOWS:
        for title, one in parse(path)["jobs"].items():
            uses = [step.get("uses", "") for step in one["steps"]]
            if "pull-requests" in one["permissions"]:
                assert not [step for step in one["steps"] if "run" in step], title
                assert not [use for use in uses if use.startswith("actions/checkout")], title
                assert [
                    step["with"]["command"] for step in one["steps"] if "$/actions/job" in step.get("uses", "")
                ] == ["report"]


@pytest.mark.parametrize("path", [*WORKFLOWS, *EXAMPLES], ids=name)
def test_the_event_that_hands_out_rights_to_strangers_is_never_used(path):
    assert "pull_request_target" not in path.read_text()
    assert "secrets: inherit" not in path.read_text()


def test_self_hosted_legs_are_off_for_forks_where_the_plan_has_no_say():
    condition = parse(ROOT / ".github/workflows/onnx-ci.yml")["jobs"]["verify-self-hosted"]["if"]
    assert "github.event.pull_request.head.repo.full_name == github.repository" in condition


def test_the_copy_of_the_action_is_what_the_root_says():
    assert ACTIONS[1].read_text() == copy.copied(ACTIONS[0].read_text())


def test_every_input_is_handed_over_by_environment_once():
    document = parse(ACTIONS[0])
    (step,) = [step for step in document["runs"]["steps"] if step.get("id") == "job"]
    handed = {key: value for key, value in step["env"].items() if key.startswith("INPUT_")}
    named = {f"INPUT_{key.upper().replace('-', '_')}" for key in document["inputs"]} - {"INPUT_WORKING_DIRECTORY"}
    assert set(handed) == named
    for key, value in handed.items():
        assert f"inputs.{key.removeprefix('INPUT_').lower().replace('_', '-')}" in value


def test_every_input_is_known_to_the_script():
    known = {*job.OPTIONS, *job.SWITCHES, "command", "token", "leg", "working-directory"}
    assert set(parse(ACTIONS[0])["inputs"]) == known


def test_every_option_is_one_that_its_commands_take_and_defaults_agree():
    inputs = parse(ACTIONS[0])["inputs"]
    for name_, (option, takers) in job.OPTIONS.items():
        for command in job.COMMANDS:
            parameters = {flag: one for one in cli.cli.commands[command].params for flag in one.opts}
            assert (option in parameters) == (command in takers), f"{command} {option}"
            if inputs[name_]["default"] and command in takers:
                assert str(parameters[option].default) == inputs[name_]["default"], option


def test_commands_are_those_of_the_command_line():
    assert set(job.COMMANDS) <= set(cli.cli.commands)
    assert set(job.MAKES) == set(job.COMMANDS)
    for command in job.COMMENTING:
        assert "--comment" in {flag for one in cli.cli.commands[command].params for flag in one.opts}


def test_every_output_is_one_that_some_step_writes():
    said = set(re.findall(r"steps\.job\.outputs\.([\w-]+)", ACTIONS[0].read_text()))
    inputs = {"command": "run", "out": "onnx-ci-out"}
    written = set(job.outputs(inputs, 0, here=Path("/nowhere"), workspace=Path("/nowhere")))
    source = "".join(path.read_text() for path in (ROOT / "src/onnx_ci").rglob("*.py"))
    for output in said - written:
        assert f'"{output}' in source or f"{output}=" in source, output


def test_the_reusable_workflow_hands_on_inputs_that_the_action_has():
    known = set(parse(ACTIONS[0])["inputs"])
    for path in WORKFLOWS:
        for step in steps(path):
            if step.get("uses") == "$/actions/job":
                assert set(step["with"]) <= known, step


def test_descriptions_fit_the_marketplace():
    document = parse(ACTIONS[0])
    assert len(document["description"]) <= 125
    for kind in ("inputs", "outputs"):
        for key, value in document[kind].items():
            assert value["description"].endswith("."), key


def test_the_scripts_stay_small():
    for module in (setup, job, copy):
        assert len(inspect.getsource(module).splitlines()) <= 300
