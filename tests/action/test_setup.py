"""The tool's own environment: where it belongs, and that no job ever sees half of one."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.action.harness import ROOT
from tests.action.scripts import setup

PYTHON = Path(sys.executable)


@pytest.fixture
def whole(tmp_path):
    """An environment as a finished job leaves it; its packages are those of the tests."""

    def make(name="environment"):
        folder = tmp_path / name
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").symlink_to(PYTHON)
        (folder / setup.COMPLETE).write_text("")
        return folder

    return make


def fake_python(path, answer):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{answer}\n")
    path.chmod(0o755)
    return path


def test_the_place_changes_with_the_lock(tmp_path, monkeypatch):
    environ = {"RUNNER_TOOL_CACHE": str(tmp_path)}
    first, key = setup.place(PYTHON, environ)
    assert first.parent == tmp_path / "onnx-ci"
    assert key == f"onnx-ci-tool-{first.name}"
    (tmp_path / "other.lock").write_text("click==1\n")
    monkeypatch.setattr(setup, "LOCK", tmp_path / "other.lock")
    assert setup.place(PYTHON, environ)[0] != first


def test_the_place_changes_with_the_interpreter(tmp_path):
    other = fake_python(tmp_path / "python", "echo 3.14.0 /somewhere linux-riscv64")
    assert setup.place(other, {})[1] != setup.place(PYTHON, {})[1]


def test_what_outlives_the_job_is_preferred_where_it_can_be_written(tmp_path):
    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    temporary.mkdir()
    environ = {"RUNNER_TOOL_CACHE": str(cache), "RUNNER_TEMP": str(temporary)}
    assert setup.keeper(environ) == temporary
    cache.mkdir()
    assert setup.keeper(environ) == cache


def test_a_newer_python_is_found_when_the_first_is_too_old(tmp_path):
    old = fake_python(tmp_path / "old", "echo 3 10")
    new = fake_python(tmp_path / "new", "echo 3 12")
    assert setup.base_interpreter(iter([old, tmp_path / "absent", new])) == new


def test_a_python_that_does_not_start_is_none(tmp_path):
    assert setup.version_of(fake_python(tmp_path / "python", "exit 1")) is None
    assert setup.version_of(fake_python(tmp_path / "python", "echo hello")) is None


def test_too_old_a_runner_is_told_what_to_do(tmp_path):
    with pytest.raises(setup.SetupError, match=r"needs Python 3\.11 or newer.*actions/setup-python"):
        setup.base_interpreter(iter([fake_python(tmp_path / "old", "echo 3 10")]))


def test_pythons_of_the_tool_cache_are_looked_at(tmp_path):
    python = fake_python(tmp_path / "Python" / "3.13.1" / "x64" / "bin" / "python3", "echo 3 13")
    assert python in setup.candidates({"PATH": "/nowhere", "RUNNER_TOOL_CACHE": str(tmp_path)})


def test_the_script_can_be_read_by_an_old_python():
    ast.parse((ROOT / "actions/job/setup.py").read_text(), feature_version=(3, 7))


def test_an_unfinished_environment_is_not_whole(whole):
    folder = whole()
    assert setup.is_whole(folder)
    (folder / setup.COMPLETE).unlink()
    assert not setup.is_whole(folder)


def test_one_whose_interpreter_is_gone_is_not_whole(whole):
    folder = whole()
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to("/nowhere/python")
    assert not setup.is_whole(folder)


def test_a_whole_one_is_taken_as_it_is(whole):
    folder = whole()
    assert setup.install(Path("/nowhere/python"), folder, {}) == folder / "bin" / "python"


def test_of_two_jobs_that_make_it_at_once_both_end_with_a_whole_one(whole):
    first, second = whole("first"), whole("second")
    place = first.parent / "place"
    setup.publish(first, place)
    setup.publish(second, place)
    assert setup.is_whole(place)


def test_a_broken_one_is_replaced(whole):
    place = whole("place")
    (place / setup.COMPLETE).unlink()
    setup.publish(whole("new"), place)
    assert setup.is_whole(place)
    assert sorted(path.name for path in place.parent.iterdir()) == ["place"]


def test_a_failed_installation_leaves_nothing_and_says_the_step(tmp_path):
    broken = fake_python(tmp_path / "python", 'case "$*" in *venv*) exit 7;; *) echo 26.0;; esac')
    with pytest.raises(setup.SetupError, match="can't be made: exit code 7"):
        setup.install(broken, tmp_path / "kept" / "environment", {"PATH": "/nowhere"})
    assert list((tmp_path / "kept").iterdir()) == []


def test_settings_of_pip_that_lead_elsewhere_are_dropped_and_the_index_stays(tmp_path):
    seen = tmp_path / "seen"
    command = ["/bin/sh", "-c", f'echo "[$PIP_TARGET][$PIP_INDEX_URL]" > {seen}']
    setup.run(command, {"PIP_TARGET": "/elsewhere", "PIP_INDEX_URL": "https://mirror.example"}, "")
    assert seen.read_text() == "[][https://mirror.example]\n"


def test_a_runner_without_python_is_told_so(tmp_path):
    done = subprocess.run(
        ["/bin/bash", str(ROOT / "actions/job/setup.sh"), "place"],
        env={"PATH": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stdout.startswith("::error title=onnx-ci::this runner has no Python")
