"""Runs workflows under act on this machine, and reads what happened.

Three things are not GitHub's: official actions are stand-ins (`standins/`), the API is a loopback server, and `$/`,
which act does not know, is rewritten to what GitHub's runner resolves it to: the same repository at the same commit.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
BIN = Path(sys.prefix) / "bin"
CONSUMER = Path(__file__).resolve().parent / "consumer"
EXAMPLES = ROOT / "docs" / "examples"
STANDINS = Path(__file__).resolve().parent / "standins"
TOKEN = "ghs_aTokenThatIsInNoOtherText"
ACTION = "org/onnx-ci"
SHA = "5eed" * 10
PULL_REQUEST = {"pull_request": {"number": 7, "head": {"sha": SHA, "repo": {"full_name": "org/models"}}}}
FORKED = {"pull_request": {"number": 7, "head": {"sha": SHA, "repo": {"full_name": "stranger/models"}}}}
_SELF = re.compile(r"(uses:\s*)\$/(\S+)")
_OFFICIAL = re.compile(r"uses:\s*actions/([\w-]+)(?:/[\w-]+)*(@\S+)")


@dataclass(frozen=True, kw_only=True)
class Run:
    """What act did: its JSON lines, and what it said beside them."""

    code: int
    events: Sequence[Mapping[str, object]]
    stderr: str
    store: Path
    jobs: Mapping[str, str] = field(default_factory=dict)

    def summary(self) -> str:
        """The step summary, whole; an action's is told twice, by the inner and by the outer step."""
        found = [str(event["content"]) for event in self.events if event.get("command") == "summary"]
        return "\n".join(dict.fromkeys(found))

    def annotations(self, level: str) -> list[str]:
        """The messages of ``::error``, ``::warning`` or ``::notice``."""
        return [str(event["arg"]) for event in self.events if event.get("command") == level]

    def outputs(self, step: str) -> dict[str, str]:
        """The outputs that a step has set, by the last part of its id."""
        return {
            str(event["name"]): str(event["arg"])
            for event in self.events
            if event.get("command") == "set-output" and _last_id(event) == step
        }

    def steps(self) -> list[tuple[str, str, str]]:
        """Job, step and result of every step; main and post steps of one name stand beside each other."""
        return [
            (" ".join(str(event["job"]).split()), str(event["step"]), str(event["stepResult"]))
            for event in self.events
            if "stepResult" in event
        ]

    def log(self) -> str:
        """All that the steps printed."""
        return "\n".join(str(event.get("msg", "")).rstrip("\n") for event in self.events)

    def report(self) -> Any:
        """The uploaded report.json."""
        return json.loads((self.store / "onnx-ci-report" / "report.json").read_text())

    def statuses(self) -> dict[tuple[str, str], str]:
        """Per model and target what the report says of it."""
        return {(one["model"], one["target"]): one["status"] for one in self.report()["results"]}

    def all_steps_passed(self) -> bool:
        """Whether no step of any job failed."""
        return bool(self.steps()) and {result for _, _, result in self.steps()} <= {"success", "skipped"}

    def artifacts(self) -> list[str]:
        """Names of what was uploaded."""
        return sorted(path.name for path in self.store.iterdir())


def _last_id(event: Mapping[str, object]) -> str:
    ids = event.get("stepID")
    return str(ids[-1]) if isinstance(ids, list) and ids else ""


def export_action(destination: Path) -> Path:
    """A clean copy of this repository's tree, with `$/` resolved as GitHub's runner would."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    wanted = ("action.yml", "actions/", ".github/", "src/", "requirements/tool.lock", "pyproject.toml")
    for name in filter(None, listed):
        if name.startswith(wanted) and (ROOT / name).is_file():
            (destination / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, destination / name)
    for path in [*destination.rglob("*.yml")]:
        path.write_text(_SELF.sub(rf"\1{ACTION}/\2@self", path.read_text()))
    return destination


def make_repository(folder: Path, files: Mapping[str, str]) -> Path:
    """A consumer's repository with one commit, as act wants it."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"]
    for command in (["init", "-q"], ["remote", "add", "origin", "https://github.com/org/models.git"], ["add", "-A"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    subprocess.run([*git, "commit", "-qm", "models"], cwd=folder, check=True)
    return folder


def run_act(
    event_name: str,
    *,
    tree: Path,
    action: Path,
    scratch: Path,
    tools: Path,
    event: Mapping[str, object],
    api: str,
    environ: Mapping[str, str],
    store: Path | None = None,
    timeout: float = 900,
) -> Run:
    """Runs all workflows of a tree for an event and gives back what happened.

    Args:
        event_name: As in `on:`.
        tree: The consumer's repository.
        action: This repository's exported tree; what `org/onnx-ci@v1` means.
        scratch: A folder for this run alone.
        tools: What becomes RUNNER_TOOL_CACHE; runs share it, so that the tool's environment is made once.
        event: The payload.
        api: Base URL of the GitHub that the run talks to.
        environ: More variables for the steps.
        store: Where artifacts are kept; a new folder when left out.
        timeout: Seconds.
    """
    store = store or scratch / "store"
    for folder in (scratch / "home", scratch / "act", store, tools):
        folder.mkdir(parents=True, exist_ok=True)
    (scratch / "act" / "tool_cache").symlink_to(tools)  # where act puts RUNNER_TOOL_CACHE, whatever it is told
    (scratch / "event.json").write_text(json.dumps(event))
    steps = {
        "GITHUB_API_URL": api,
        "TEST_ARTIFACT_STORE": str(store),
        **_pip_settings(),
        **environ,
    }
    command = [
        str(BIN / "act"), event_name, "-C", str(tree), "-e", str(scratch / "event.json"), "--json", "--no-cache-server",
        "-P", "ubuntu-latest=-self-hosted", "-P", "self-hosted=-self-hosted", "-s", f"GITHUB_TOKEN={TOKEN}",
        *[part for name, value in steps.items() for part in ("--env", f"{name}={value}")],
        *[part for name, folder in _locals(tree, action) for part in ("--local-repository", f"{name}={folder}")],
    ]  # fmt: skip
    done = subprocess.run(
        command,
        env={"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(scratch / "home"), "XDG_CACHE_HOME": str(scratch)},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    jobs = {str(event["job"]): str(event["jobResult"]) for event in events if "jobResult" in event}
    run = Run(code=done.returncode, events=events, stderr=done.stderr, store=store, jobs=jobs)
    assert "Skipping unsupported platform" not in run.log() + run.stderr, run.stderr
    return run


def _pip_settings() -> dict[str, str]:
    """How this machine's pip reaches its index: a step has another home, and none of our variables."""
    reach = ("HTTPS_PROXY", "https_proxy", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
    found = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name in reach}
    config = Path.home() / ".config" / "pip" / "pip.conf"
    return {"PIP_CONFIG_FILE": str(config), **found} if config.exists() else found


def _locals(tree: Path, action: Path) -> Iterator[tuple[str, Path]]:
    yield f"{ACTION}@v1", action
    yield f"{ACTION}@self", action
    texts = [path.read_text() for folder in (tree, action) for path in folder.rglob("*.yml")]
    for name, ref in sorted({match for text in texts for match in _OFFICIAL.findall(text)}):
        yield f"actions/{name}{ref}", STANDINS / name  # of checkout only where a commit is named: act copies the tree
