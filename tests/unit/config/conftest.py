import datetime
from pathlib import Path

import pytest

from onnx_ci.config.load import load
from onnx_ci.config.problems import ConfigError

TODAY = datetime.date(2026, 12, 1)


@pytest.fixture
def project(tmp_path: Path):
    """A folder with what the configs of these tests name; called with a config's text, it gives config or error."""
    (tmp_path / "model.py").write_text("def build(): ...\n")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "classifier.py").write_text("def build(): ...\n")
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "one.npz").write_bytes(b"")
    (tmp_path / "samples" / "photo.png").write_bytes(b"")
    (tmp_path / "samples" / "test_data_set_0").mkdir()
    (tmp_path / "requirements.lock").write_text("torch==2.13.0\n")

    def write_and_load(text: str, name: str = "onnx-ci.toml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return load(tmp_path / name, cwd=tmp_path, today=lambda: TODAY)

    write_and_load.root = tmp_path
    return write_and_load


@pytest.fixture
def problems(project):
    """Loads a config that must fail, and gives "path: message" and hint of each problem."""

    def fail(text: str, name: str = "onnx-ci.toml"):
        with pytest.raises(ConfigError) as caught:
            project(text, name)
        return caught.value.problems

    return fail
