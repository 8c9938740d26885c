"""The action's inputs, as the environment hands them over, into `onnx-ci` and its exit code into the step's outputs.

Started by the tool's own interpreter with ``-I``; loads the tool from the tree that the action came in, so that the
ref in `uses:` is the version that runs. Standard library only, apart from that.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

OPTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "config": ("--config", ("run", "plan", "export", "verify")),
    "models": ("--model", ("run", "plan", "export", "verify")),
    "targets": ("--target", ("run", "plan", "verify")),
    "shards": ("--shards", ("plan",)),
    "artifacts": ("--artifacts", ("verify",)),
    "base": ("--base", ("run", "verify", "report")),
    "history": ("--history", ("run", "report")),
    "python": ("--python", ("run", "export", "verify")),
    "plan": ("--plan", ("report",)),
    "comment-author": ("--comment-author", ("run", "report")),
    "out": ("--out", ("run", "plan", "export", "verify", "report")),
}
"""Per input its option, and the commands that take it. An input left empty gives no option."""

COMMANDS = ("run", "plan", "export", "verify", "report")
LISTS = ("models", "targets")
COMMENTING = ("run", "report")
SWITCHES = ("comment", "cache", "upload")
PRIVILEGED = ("pull_request_target", "workflow_run")
STATUSES = {0: "pass", 1: "fail"}
_REPORT = ("report", "summary", "junit")
MAKES: dict[str, tuple[str, ...]] = {
    "run": ("plan", "results", "artifacts", "repros", *_REPORT),
    "plan": ("plan",),
    "export": ("results", "artifacts", "repros"),
    "verify": ("results", "repros"),
    "report": _REPORT,
}
"""What each command writes below `out`; a job passes on what it made itself, and nothing that it was given."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._@+-]+")


class InputError(Exception):
    """All that is wrong with the inputs, a line each."""


def read_inputs(environ: Mapping[str, str]) -> dict[str, str]:
    """The action's inputs by their names; the runner sets INPUT_… for no composite action, so action.yml does."""
    prefix = "INPUT_"
    return {
        name[len(prefix) :].lower().replace("_", "-"): value.strip()
        for name, value in environ.items()
        if name.startswith(prefix)
    }


def arguments(inputs: Mapping[str, str], event: str) -> list[str]:
    """The command line of `onnx-ci` for these inputs.

    Raises:
        InputError: Naming every input that can't be.
    """
    problems = list(_problems(inputs, event))
    if problems:
        raise InputError("\n".join(problems))
    command = inputs["command"]
    line = [command]
    for name, (option, takers) in OPTIONS.items():
        if command in takers:
            values = inputs.get(name, "").splitlines() if name in LISTS else [inputs.get(name, "")]
            line += [f"{option}={value.strip()}" for value in values if value.strip()]
    if command in COMMENTING:
        line.append("--comment" if inputs["comment"] == "true" else "--no-comment")
    return line


def _problems(inputs: Mapping[str, str], event: str) -> Iterator[str]:
    command = inputs.get("command", "")
    if command not in COMMANDS:
        yield f"input 'command': expected one of {', '.join(COMMANDS)}; got {command!r}"
        return
    for name in SWITCHES:
        if inputs.get(name) not in ("true", "false"):
            yield f"input '{name}': expected true or false, got {inputs.get(name, '')!r}"
    for name, (_, takers) in OPTIONS.items():
        if inputs.get(name) and command not in takers:
            yield f"input '{name}' means nothing to the command '{command}'; it belongs to {', '.join(takers)}"
    if event in PRIVILEGED and command != "report":
        yield (
            f"the command '{command}' runs the repository's code, and a workflow on {event} holds rights that a pull "
            "request's code must not get. Use the event pull_request; for comments on pull requests from forks see "
            "docs/forks.md"
        )


def outputs(inputs: Mapping[str, str], code: int, *, here: Path, workspace: Path) -> dict[str, str]:
    """What the step says to those after it: paths from the workspace, each only where there is something."""
    out = here / inputs["out"]
    files = {
        "report": out / "report" / "report.json",
        "summary": out / "report" / "summary.md",
        "junit": out / "report" / "junit.xml",
        "plan": out / "plan.json",
        "upload-plan": out / "plan.json",
        "upload-results": out / "results",
        "upload-artifacts": out / "artifacts",
        "upload-repros": out / "repro",
        "upload-report": out / "report",
    }
    made = MAKES[inputs["command"]]
    paths = {
        name: _from(workspace, path) if name.removeprefix("upload-") in made and _is_filled(path) else ""
        for name, path in files.items()
    }
    leg = _NOT_IN_NAMES.sub("-", inputs.get("leg", "") or inputs["command"])
    return {**paths, "leg": leg, "exit-code": str(code), "status": _status(files["report"], inputs["command"], code)}


def _is_filled(path: Path) -> bool:
    return path.is_file() or (path.is_dir() and any(path.iterdir()))


def _from(workspace: Path, path: Path) -> str:
    return (path.relative_to(workspace) if path.is_relative_to(workspace) else path).as_posix()


def _status(report: Path, command: str, code: int) -> str:
    """The report's own status where this command wrote one and could; the exit code's otherwise."""
    if command in COMMENTING and code in STATUSES:
        try:
            return str(json.loads(report.read_bytes())["status"])
        except (OSError, ValueError, KeyError, TypeError):
            return "error"
    return STATUSES.get(code, "error")


def write_outputs(values: Mapping[str, str], path: Path) -> None:
    """Appends step outputs under a delimiter that no value can know."""
    with path.open("a", encoding="utf-8") as stream:
        for name, value in values.items():
            delimiter = f"onnx-ci-{secrets.token_hex(16)}"
            stream.write(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")


def main() -> int:
    """Runs the command that the inputs ask for; its exit code is the step's."""
    inputs = read_inputs(os.environ)
    try:
        line = arguments(inputs, os.environ.get("GITHUB_EVENT_NAME", ""))
    except InputError as error:
        for problem in str(error).splitlines():
            print(f"::error title=onnx-ci::{problem.replace('%', '%25')}")
        return 2
    if token := os.environ.pop("INPUT_TOKEN", ""):
        os.environ["GITHUB_TOKEN"] = token
    sys.path.insert(0, str(ROOT / "src"))
    sys.argv = ["onnx-ci", *line]
    from onnx_ci import cli

    try:
        cli.main()
        code = 0
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    here = Path.cwd()
    workspace = Path(os.environ.get("GITHUB_WORKSPACE", here)).resolve()
    write_outputs(outputs(inputs, code, here=here, workspace=workspace), Path(os.environ["GITHUB_OUTPUT"]))
    return code


if __name__ == "__main__":
    sys.exit(main())
