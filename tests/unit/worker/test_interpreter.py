from pathlib import Path

import pytest

from onnx_ci.errors import UsageError
from onnx_ci.worker.interpreter import find_python, user_environment


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_interpreter_that_was_asked_for_is_taken_as_it_is(tmp_path):
    python = executable(tmp_path / "bin" / "python3.10")
    found = find_python(str(python), {"PATH": ""}, ["torch"], has_modules=lambda *_: False)
    assert found == python


def test_one_that_is_not_there_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="no such interpreter"):
        find_python(str(tmp_path / "nothing"), {"PATH": ""}, ["torch"])


def test_an_active_environment_goes_before_the_path(tmp_path):
    active = executable(tmp_path / "venv" / "bin" / "python")
    executable(tmp_path / "path" / "python")
    environment = {"VIRTUAL_ENV": str(tmp_path / "venv"), "PATH": str(tmp_path / "path")}
    assert find_python(None, environment, ["torch"], has_modules=lambda *_: True) == active


def test_the_path_goes_before_our_own_where_it_has_the_modules(tmp_path):
    on_path = executable(tmp_path / "path" / "python")
    environment = {"PATH": str(on_path.parent)}
    assert find_python(None, environment, ["torch"], has_modules=lambda *_: True) == on_path
    ours = find_python(None, environment, ["torch"], has_modules=lambda python, _: python != on_path)
    assert ours != on_path


def test_no_interpreter_with_the_modules_names_where_it_looked(tmp_path):
    on_path = executable(tmp_path / "path" / "python")
    with pytest.raises(UsageError) as caught:
        find_python(None, {"PATH": str(on_path.parent)}, ["torch", "onnx"], has_modules=lambda *_: False)
    assert str(on_path) in str(caught.value)
    assert "torch and onnx" in str(caught.value)


def test_user_code_sees_no_token_and_no_channel_to_the_runner():
    given = {
        "PATH": "/bin",
        "HOME": "/home/me",
        "MY_SETTING": "1",
        "GITHUB_TOKEN": "secret",
        "GH_TOKEN": "secret",
        "INPUT_TOKEN": "secret",
        "ONNX_CI_TOKEN": "secret",
        "ACTIONS_RUNTIME_TOKEN": "secret",
        "ACTIONS_ID_TOKEN_REQUEST_URL": "secret",
        "GITHUB_OUTPUT": "/channel",
        "GITHUB_ENV": "/channel",
        "GITHUB_PATH": "/channel",
        "GITHUB_STATE": "/channel",
        "GITHUB_STEP_SUMMARY": "/channel",
    }
    seen = user_environment(given)
    assert seen == {"PATH": "/bin", "HOME": "/home/me", "MY_SETTING": "1", "OMP_WAIT_POLICY": "passive"}


def test_a_wait_policy_of_the_user_is_kept():
    assert user_environment({"OMP_WAIT_POLICY": "active"})["OMP_WAIT_POLICY"] == "active"


def test_a_relative_path_holds_from_any_folder_and_a_link_is_kept(tmp_path, monkeypatch):
    real = executable(tmp_path / "real" / "python3.11")
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "python").symlink_to(real)
    monkeypatch.chdir(tmp_path)
    assert find_python("venv/python", {"PATH": ""}, ["torch"]) == tmp_path / "venv" / "python"
