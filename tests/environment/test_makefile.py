"""What is missing on a machine is said in one line, by name, before anything is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ["make", "sh", "touch", "rm", "env", "bash", "dirname"]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that a fresh clone starts from, and a PATH with no Python, git or onnx-ci on it."""
    tree = tmp_path / "clone"
    for name in ("Makefile", "pyproject.toml", ".ci/run", "requirements"):
        source, target = ROOT / name, tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, tool
        (tmp_path / "bin" / tool).symlink_to(found)
    return tree


def run(clone: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = clone.parent / "bin"
    return subprocess.run(
        [path / command[0], *command[1:]],
        cwd=clone,
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def script(clone: Path, name: str, body: str) -> None:
    file = clone.parent / "bin" / name
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


def test_a_missing_python_is_one_line_with_what_to_do(clone: Path):
    done = run(clone, "make", "demo")
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if "***" not in line]
    assert said == ["make: Python 3.11 or newer is missing: install it, or name it with PYTHON=/path/to/python3"]
    assert not (clone / ".venv").exists()


def test_a_python_that_is_too_old_counts_as_missing(clone: Path):
    script(clone, "python3", "exit 1")
    assert "Python 3.11 or newer is missing" in run(clone, "make", "demo").stderr


def test_a_python_without_its_venv_module_is_told_apart(clone: Path):
    script(clone, "python3", 'case "$2" in *ensurepip*) exit 1;; *) exit 0;; esac')
    assert "python3 has no venv module" in run(clone, "make", "demo").stderr


def test_the_tests_ask_for_git_by_name(clone: Path):
    done = run(clone, "make", "need-git")
    assert done.returncode == 2
    assert "git is missing" in done.stderr


@pytest.mark.parametrize("missing", ["git", "make"])
def test_the_ci_script_names_what_it_misses(clone: Path, missing: str):
    present = {"git", "make"} - {missing}
    for tool in ("git", "make"):
        (clone.parent / "bin" / tool).unlink(missing_ok=True)
    for tool in present:
        script(clone, tool, "exit 0")
    done = run(clone, "bash", ".ci/run")
    assert done.returncode == 1
    assert f"{missing} is missing" in done.stderr


def test_nothing_is_installed_anew_when_nothing_changed(clone: Path):
    venv = clone / ".venv"
    venv.mkdir()
    for stamp in (".locked", ".ready"):
        (venv / stamp).touch()
    assert "up to date" in run(clone, "make", ".venv/.ready").stdout


@pytest.mark.parametrize("changed", ["requirements/dev.lock", "requirements/weights.lock", "requirements/torch.txt"])
def test_a_changed_lock_is_installed(clone: Path, changed: str):
    venv = clone / ".venv"
    venv.mkdir()
    for stamp in (".locked", ".ready"):
        (venv / stamp).touch()
    file = clone / changed
    later = (venv / ".ready").stat().st_mtime + 10
    os.utime(file, (later, later))
    assert run(clone, "make", "--question", ".venv/.locked").returncode == 1
