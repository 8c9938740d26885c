"""Interpreters that can't serve: each is one clear error."""

import os
import sys
import venv
from pathlib import Path

import pytest

from onnx_ci.errors import OnnxCiError, UsageError
from onnx_ci.records.messages import Request
from onnx_ci.worker.files import claimed
from onnx_ci.worker.launch import Workers


def perform(python: Path, folder: Path, *preload: str):
    request = Request(id=1, verb="environment", log=str(folder / "log"), time_limit=30)
    with Workers(python, folder=folder, environment=os.environ, preload=preload) as workers:
        return workers.perform(request, lambda stage: None)


def test_a_program_that_is_no_interpreter_is_a_usage_error_in_one_line(tmp_path):
    with pytest.raises(UsageError) as caught:
        perform(Path("/bin/ls"), tmp_path)
    assert "/bin/ls: this interpreter did not start" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_without_torch_says_so(tmp_path):
    venv.create(tmp_path / "bare", with_pip=False)
    with pytest.raises(OnnxCiError) as caught:
        perform(tmp_path / "bare" / "bin" / "python", tmp_path, "torch")
    assert "torch is not installed for" in str(caught.value)
    assert "pip install torch" in caught.value.hint


def test_a_bare_one_still_describes_itself(tmp_path):
    venv.create(tmp_path / "bare", with_pip=False)
    event = perform(tmp_path / "bare" / "bin" / "python", tmp_path)
    assert event.kind == "result"
    assert "torch" not in event.payload["packages"]


def test_our_own_describes_what_is_installed(tmp_path):
    event = perform(Path(sys.executable), tmp_path)
    assert {"torch", "onnx", "onnxruntime"} <= set(event.payload["packages"])


def test_a_folder_is_claimed_once(tmp_path):
    with claimed(tmp_path), pytest.raises(UsageError, match="another onnx-ci is writing"), claimed(tmp_path):
        pass
    with claimed(tmp_path):
        pass
