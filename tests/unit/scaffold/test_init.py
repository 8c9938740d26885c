"""The first config and workflows."""

import json
import subprocess
import sys

import pytest
import yaml

from onnx_ci.config.load import load
from onnx_ci.errors import ExitCode, OnnxCiError
from onnx_ci.scaffold import init as first

SHORT = "def make_model(): ...\ndef make_inputs(): ...\n"
FILES = ["onnx-ci.toml", ".github/workflows/onnx-ci.yml", ".github/workflows/onnx-ci-comment.yml"]


def init(root):
    said = []
    assert first.init(root, said.append) == ExitCode.PASS
    return said


def test_a_config_that_loads_and_two_workflows(tmp_path):
    (tmp_path / "model.py").write_text(SHORT)
    (tmp_path / "net.py").write_text("def build() -> nn.Module: ...")
    said = init(tmp_path)
    assert said[:3] == [f"wrote  {name}" for name in FILES]
    assert said[3:] == [
        "Models found: model (model.py), net (net.py:build)",
        "Next: look over onnx-ci.toml, then run: onnx-ci run",
    ]
    assert [model.entrypoint for model in load(None, cwd=tmp_path).models] == ["model.py", "net.py:build"]
    workflow = yaml.safe_load((tmp_path / FILES[1]).read_text())
    comment = yaml.safe_load((tmp_path / FILES[2]).read_text())
    assert comment[True]["workflow_run"]["workflows"] == [workflow["name"]]


def test_the_workflows_are_valid(tmp_path):
    init(tmp_path)
    schema = ["--builtin-schema", "vendor.github-workflows"]
    files = [str(tmp_path / name) for name in FILES[1:]]
    subprocess.run([sys.executable, "-m", "check_jsonschema", *schema, *files], check=True, capture_output=True)


def test_nothing_that_is_there_is_touched(tmp_path):
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine\n")
    assert init(tmp_path) == [*(f"kept   {name}" for name in FILES), "Nothing to do: all is there."]
    assert {(tmp_path / name).read_text() for name in FILES} == {"mine\n"}


def test_a_second_time_writes_nothing(tmp_path):
    init(tmp_path)
    assert init(tmp_path)[-1] == "Nothing to do: all is there."


def test_a_config_in_pyproject_is_the_config(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.onnx-ci.models.m]\nentrypoint = "m.py"\n')
    init(tmp_path)
    assert not (tmp_path / "onnx-ci.toml").exists()
    assert (tmp_path / FILES[1]).exists()


def test_without_a_model_the_config_says_what_to_fill_in(tmp_path):
    assert "No model was found: name its entrypoint in onnx-ci.toml." in init(tmp_path)
    with pytest.raises(OnnxCiError, match=r'models.model.entrypoint: "FILE.py": no such file'):
        load(None, cwd=tmp_path)


@pytest.mark.parametrize(
    ("files", "locked", "command"),
    [
        ({}, "", "pip install torch onnx onnxruntime onnxscript numpy"),
        ({"requirements.txt": "torch\n"}, "", "pip install -r requirements.txt"),
        ({"requirements.txt": "torch==2.9.0\n"}, "requirements.txt", "pip install -r requirements.txt"),
        ({"requirements.lock": "torch==2.9.0\n"}, "requirements.lock", "pip install -r requirements.lock"),
        ({"uv.lock": "[[package]]\nname='torch'\nversion='2.9.0'\n"}, "uv.lock", "uv export --frozen"),
        ({"uv.lock": "not = [toml"}, "", "pip install torch"),
    ],
)
def test_lock_and_installation_are_those_of_the_project(tmp_path, files, locked, command):
    (tmp_path / "model.py").write_text(SHORT)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    init(tmp_path)
    assert list(load(None, cwd=tmp_path).lock.files) == ([locked] if locked else [])
    steps = yaml.safe_load((tmp_path / FILES[1]).read_text())["jobs"]["onnx"]["steps"]
    assert any(command in step.get("run", "") for step in steps)


def test_a_folder_that_can_not_be_written_is_one_clear_error(tmp_path):
    (tmp_path / ".github").write_text("a file in the way")
    with pytest.raises(OnnxCiError, match="can't be written"):
        init(tmp_path)


def test_a_name_from_outside_stays_text(tmp_path):
    assert json.dumps('a"b') in first.config_text([first.Candidate(name="a", entrypoint='a"b')], "")
